#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

bit<8> effect(inout bit<8> x, in bit<8> r) { x = x + 1; return r; }
bool yes(inout bit<8> x) { x = x + 1; return true; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        // && and || stop early, ?: evaluates one side.
        if (hdr.h.a == 0 && yes(hdr.h.b)) { }
        if (hdr.h.a == 0 || yes(hdr.h.b)) { }
        bit<8> t = hdr.h.a == 0 ? effect(hdr.h.c[7:0], 1) : effect(hdr.h.c[15:8], 2);
        // The left operand is read before the call on the right changes it.
        hdr.h.d[7:0] = hdr.h.b + effect(hdr.h.b, 0x10);
        hdr.h.d[15:8] = t;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
