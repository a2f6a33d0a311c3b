// Section 6.8: what parameters see where arguments overlap, or change one another.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
header e_t { bit<8> a; }
struct H { h_t h; e_t[2] s; h_t o; }
struct M {}

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
void sub(inout bit<8> x, in bit<8> y) { x = x - y; }
bit<8> minus(in bit<8> x, in bit<8> y) { return x - y; }
void fill(out h_t h, in bit<8> v) { h.setValid(); h.a = v; }
void two(inout bit<8> x, inout bit<8> y) { x = 1; y = 2; }
void low_first(inout bit<4> x, inout bit<8> y) { x = 1; y = 2; }
void low_last(inout bit<8> x, inout bit<4> y) { x = 0x20; y = 1; }
void add(inout bit<8> x, in bit<8> y) { x = x + y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); p.extract(hdr.s.next); p.extract(hdr.s.next); p.extract(hdr.o); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set() { hdr.h.e = 0x70; }
    table t { key = { hdr.h.f : exact; } actions = { set; } default_action = set(); }
    apply {
        sm.egress_spec = 1;
        // Copied in before a later argument changes it, copied out after.
        sub(hdr.h.a, bump(hdr.h.a));
        // An `out` header is made invalid after the other arguments are read.
        fill(hdr.o, hdr.o.a + 1);
        hdr.o.b = minus(hdr.h.b, bump(hdr.h.b));
        // The last parameter is copied out last, whether its place is an index, a slice, or neither.
        two(hdr.s[hdr.h.f].a, hdr.s[0].a);
        hdr.o.c = hdr.s[0].a;
        two(hdr.s[1].a, hdr.s[hdr.h.f + 1].a);
        low_first(hdr.h.c[3:0], hdr.h.c);
        low_last(hdr.h.d, hdr.h.d[3:0]);
        add(hdr.h.e, t.apply().hit ? 8w1 : 8w2);
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
