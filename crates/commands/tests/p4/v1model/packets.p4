// truncate, both forms of mark_to_drop, multicast with egress_rid, packet_length, random of one value, log_msg, assert.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        hdr.h.d = sm.packet_length;
        random(hdr.h.b, 8w7, 8w7);
        log_msg("a is {} and b {}", { hdr.h.a, hdr.h.b });
        assert(hdr.h.b == 7);
        assume(hdr.h.isValid());
        sm.egress_spec = 1;
        if (hdr.h.a == 1) { truncate(10); }
        else if (hdr.h.a == 2) { mark_to_drop(sm); }
        else if (hdr.h.a == 3) { mark_to_drop(sm); sm.egress_spec = 2; }
        else if (hdr.h.a == 4) { sm.mcast_grp = 6; }
        else if (hdr.h.a == 5) { sm.mcast_grp = 7; }
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        hdr.h.c = sm.egress_rid;
        if (hdr.h.a == 6) { mark_to_drop(sm); }
        if (sm.egress_port == 3) { hdr.h.b = 0x33; }
    }
}
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
