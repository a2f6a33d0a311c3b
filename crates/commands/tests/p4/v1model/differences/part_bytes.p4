#include <core.p4>
#include <v1model.p4>

// Headers that are no whole bytes, and `advance` by part of one.
header half_t { bit<4> n; }
header h_t { bit<4> a; bit<8> b; }
struct H { half_t half; h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        // Half a byte, then half a byte skipped, one and a half read, and half a byte skipped.
        p.extract(hdr.half);
        p.advance(4);
        p.extract(hdr.h);
        p.advance(4);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error != error.NoError) { sm.egress_spec = 2; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.half); p.emit(hdr.h); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
