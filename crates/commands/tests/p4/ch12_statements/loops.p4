#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
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
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { if (i == 3) { continue; } if (i == 6) { break; } hdr.h.b = hdr.h.b + i; }
        for (bit<16> i in 1 .. 4) { hdr.h.c = hdr.h.c + i; }
        for (bit<32> v in (list<bit<32>>) { 5, 6, 7 }) { if (v == 6) { continue; } hdr.h.d = hdr.h.d + v; }
        // Up to the largest value, which is not followed by another.
        for (bit<8> i in 254 .. 255) { hdr.h.d = hdr.h.d + 0x100; }
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
