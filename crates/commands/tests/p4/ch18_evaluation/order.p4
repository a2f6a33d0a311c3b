// Sections 6.7 and 18.4: arguments are evaluated and copied in from left to right, copied out from left to right; `exit`
// in a called control ends the block, after copying out; `out` parameters of an action; locals start anew in each call.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control same(inout bit<8> x, inout bit<8> y) {
    bit<8> calls = 0;
    apply {
        calls = calls + 1;
        x = x + calls;                                  // 1 in every call
        y = y + 0x10;
        if (y == 0xf0) { exit; }
        y = y + 1;
    }
}
bit<8> next(inout bit<8> n) { n = n + 1; return n; }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    same() s;
    action both(out bit<8> x, inout bit<8> y) { x = y; y = 7; }
    apply {
        sm.egress_spec = 1;
        bit<8> n = 0;
        hdr.h.c = next(n) ++ next(n);
        both(hdr.h.d[31:24], n);
        hdr.h.d[23:16] = n;
        s.apply(hdr.h.a, hdr.h.b);
        s.apply(hdr.h.a, hdr.h.a);                      // the second one is copied out last
        hdr.h.d[7:0] = 0xff;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
