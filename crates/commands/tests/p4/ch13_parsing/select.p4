#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) {
            (0, _): zero;
            (1 .. 3, 5): range;
            (0x80 &&& 0xf0, default): mask;
            (4, 4): reject;
            (5, _): accept;
        }
    }
    state zero { m.x = 1; transition accept; }
    state range { m.x = 2; transition accept; }
    state mask { m.x = 3; transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hdr.h.c = (bit<16>) m.x;
        if (sm.parser_error == error.NoMatch) { hdr.h.d = 0xee; }
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
