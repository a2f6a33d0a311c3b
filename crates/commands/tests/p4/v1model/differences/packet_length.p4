#include <core.p4>
#include <v1model.p4>

// The length in egress of a packet to which ingress has added a header and from which it has taken one.
header h_t { bit<8> what; bit<32> length; }
header small_t { bit<8> b; }
header large_t { bit<24> b; }
struct H { h_t h; small_t small; large_t large; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); p.extract(hdr.small); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.what == 1) { hdr.large.setValid(); hdr.large.b = 0xabcdef; }
        if (hdr.h.what == 2) { hdr.small.setInvalid(); }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { hdr.h.length = sm.packet_length; } }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
