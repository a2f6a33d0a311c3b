#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M { }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition turn; }
    // It takes nothing from the packet, so that the packet does not end it.
    state turn { transition select(hdr.h.a) { 0: turn; default: accept; } }
}

control V(inout H hdr, inout M m) {
    apply { }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error == error.ParserTimeout) { hdr.h.b = 1; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { }
}

control C(inout H hdr, inout M m) {
    apply { }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
