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
    
    action leave() { hdr.h.b = 1; exit; }
    action back() { hdr.h.b = 2; return; hdr.h.b = 3; }
    table t { key = { hdr.h.a : exact; } actions = { leave; back; } default_action = back(); const entries = { 1 : leave(); } }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.a == 9) { return; }
        t.apply();
        hdr.h.c = 1;
        back();
        hdr.h.c = 2;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { hdr.h.d = 5; }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
