#include <core.p4>
#include <v1model.p4>

header h_t { int<8> a; int<8> b; int<8> sadd; int<8> ssub; int<8> shr; int<8> mul; bit<8> lt; bit<8> ge; int<16> wide; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hdr.h.sadd = hdr.h.a |+| hdr.h.b;
        hdr.h.ssub = hdr.h.a |-| hdr.h.b;
        hdr.h.shr = hdr.h.a >> 2;
        hdr.h.mul = hdr.h.a * hdr.h.b;
        hdr.h.lt = hdr.h.a < hdr.h.b ? 8w1 : 0;
        hdr.h.ge = hdr.h.a >= hdr.h.b ? 8w1 : 0;
        hdr.h.wide = (int<16>) hdr.h.a;
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
