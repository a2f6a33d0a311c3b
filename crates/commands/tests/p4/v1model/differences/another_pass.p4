#include <core.p4>
#include <v1model.p4>

// Where and when a packet came, in its second pass: resubmitted (1) or recirculated (2).
header h_t { bit<8> kind; bit<8> port; bit<8> same_time; }
struct H { h_t h; }
struct M { @field_list(1) bit<48> came_at; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.instance_type != 0) {
            hdr.h.port = (bit<8>) sm.ingress_port;
            hdr.h.same_time = sm.ingress_global_timestamp == m.came_at ? 8w1 : 8w0;
        } else {
            m.came_at = sm.ingress_global_timestamp;
            if (hdr.h.kind == 1) {
                resubmit_preserving_field_list(1);
            }
        }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.kind == 2) {
            hdr.h.kind = 3;
            recirculate_preserving_field_list(1);
        }
    }
}

control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
