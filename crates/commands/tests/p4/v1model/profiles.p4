// An action profile whose members two entries share, and a selector whose group hashes one field.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.h.b = v; }
    action mark(bit<16> v) { hdr.h.c = v; }
    action_profile(4) shared;
    action_selector(HashAlgorithm.identity, 8, 16) chosen;
    table t { key = { hdr.h.a : exact; } actions = { set; NoAction; } implementation = shared; }
    table s { key = { hdr.h.a : exact; hdr.h.d : selector; } actions = { mark; NoAction; } implementation = chosen; }
    apply {
        sm.egress_spec = 1;
        t.apply();
        s.apply();
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
