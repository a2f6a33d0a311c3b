#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> add; bit<8> sub; bit<8> mul; bit<8> sadd; bit<8> ssub; bit<8> shl; bit<8> shr; bit<8> band; bit<8> bor; bit<8> bxor; bit<8> inv; bit<8> neg; }
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
        hdr.h.add = hdr.h.a + hdr.h.b;
        hdr.h.sub = hdr.h.a - hdr.h.b;
        hdr.h.mul = hdr.h.a * hdr.h.b;
        hdr.h.sadd = hdr.h.a |+| hdr.h.b;
        hdr.h.ssub = hdr.h.a |-| hdr.h.b;
        hdr.h.shl = hdr.h.a << 3;
        hdr.h.shr = hdr.h.a >> hdr.h.b;
        hdr.h.band = hdr.h.a & hdr.h.b;
        hdr.h.bor = hdr.h.a | hdr.h.b;
        hdr.h.bxor = hdr.h.a ^ hdr.h.b;
        hdr.h.inv = ~hdr.h.a;
        hdr.h.neg = -hdr.h.a;
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
