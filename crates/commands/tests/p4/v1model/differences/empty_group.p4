#include <core.p4>
#include <v1model.p4>

// An entry that leads to a group without members.
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action put(bit<8> v) { hdr.h.b = v; }
    action missed() { hdr.h.b = 0xdd; }
    action_selector(HashAlgorithm.identity, 8, 16) chosen;
    table t {
        key = { hdr.h.a : exact; hdr.h.b : selector; }
        actions = { put; missed; }
        implementation = chosen;
        default_action = missed();
    }
    apply {
        sm.egress_spec = 1;
        if (t.apply().hit) { sm.egress_spec = 2; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
