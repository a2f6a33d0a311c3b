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
    
    action put(bit<8> v, bit<16> w) { hdr.h.b = v; hdr.h.c = w; }
    action bound(inout bit<32> where, bit<32> v) { where = where + v; }
    table t { key = { hdr.h.a : ternary; hdr.h.d[7:0] : exact @name("low"); } actions = { put; bound(hdr.h.d); NoAction; } default_action = put(1, 2); size = 8; }
    apply {
        sm.egress_spec = 1;
        if (t.apply().miss) { hdr.h.a = 0xee; }
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
