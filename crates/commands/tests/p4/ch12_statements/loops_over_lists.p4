// Section 12.8: a loop takes the elements of a list or stack as they were before its first round.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header e_t { bit<8> x; }
struct H { h_t h; e_t[3] s; }
struct M {}

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        p.extract(hdr.s.next);
        p.extract(hdr.s.next);
        p.extract(hdr.s.next);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action nine() { hdr.h.b = 9; }
    table t { key = { hdr.h.b : exact; } actions = { nine; } default_action = nine(); }
    apply {
        sm.egress_spec = 1;
        hdr.h.a = 0;
        for (bit<8> x in { hdr.h.c, hdr.h.b }) { t.apply(); hdr.h.a = hdr.h.a + x; }
        bit<8> y = 4;
        for (bit<8> z in { 8w1, y, bump(y) }) { if (z == 4) { continue; } hdr.h.d = hdr.h.d + z; }
        for (e_t e in hdr.s) {
            hdr.h.c = hdr.h.c + e.x;
            hdr.s[2].x = hdr.s[2].x + 0x10;
            hdr.s.pop_front(1);
            if (e.x == 2) { break; }
        }
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
