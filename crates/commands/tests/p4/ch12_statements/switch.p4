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
    
    action one() { } action two() { } action other() { }
    table t { key = { hdr.h.a : exact; } actions = { one; two; other; } default_action = other(); const entries = { 1 : one(); 2 : two(); } }
    apply {
        sm.egress_spec = 1;
        switch (t.apply().action_run) { one: { hdr.h.b = 1; } two: other: { hdr.h.b = 2; } }
        switch (hdr.h.a) { 1: 3: { hdr.h.c = 1; } 8w2: { hdr.h.c = 2; } default: { hdr.h.c = 3; } }
        switch (hdr.h.d) { 32w1: { hdr.h.d = 9; } }
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
