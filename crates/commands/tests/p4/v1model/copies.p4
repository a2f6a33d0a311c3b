#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { @field_list(1) bit<8> keep; bit<8> lose; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        if (sm.instance_type == 0) {
            m.keep = 0x33; m.lose = 0x44;
            if (hdr.h.a == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); hdr.h.b = 0x11; }
            else if (hdr.h.a == 2) { resubmit_preserving_field_list(1); hdr.h.b = 0x22; }
            else if (hdr.h.a == 3) { sm.mcast_grp = 7; }
            else if (hdr.h.a == 6) { mark_to_drop(sm); clone(CloneType.I2E, 5); }
        } else {
            // Resubmitted or recirculated.
            hdr.h.c = sm.instance_type[7:0] ++ (m.keep + m.lose);
        }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { 
        if (sm.instance_type == 1 || sm.instance_type == 2) { hdr.h.c = sm.instance_type[7:0] ++ (m.keep + m.lose); }
        else if (sm.instance_type == 5) { hdr.h.c = sm.egress_rid; }
        else if (hdr.h.a == 4 && m.keep != 0x55) { m.keep = 0x55; m.lose = 0x66; recirculate_preserving_field_list(1); hdr.h.b = 0x77; }
        else if (hdr.h.a == 5) { m.keep = 0x12; m.lose = 0x66; hdr.h.b = 0x88; clone_preserving_field_list(CloneType.E2E, 5, 1); truncate(6); } }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
