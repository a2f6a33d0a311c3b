#include <core.p4>
#include <v1model.p4>

// Copies asked for in the control in which they are not made.
header h_t { bit<8> where; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.where == 1) { clone(CloneType.E2E, 5); recirculate_preserving_field_list(0); }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { if (hdr.h.where == 2) { clone(CloneType.I2E, 5); resubmit_preserving_field_list(0); } }
}

control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
