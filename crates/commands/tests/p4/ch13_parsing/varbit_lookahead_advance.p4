#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> len; varbit<32> v; bit<8> after; }
header r_t { bit<16> peek; bit<8> code; }
struct H { r_t r; h_t h; h_t copy; }
struct M { bit<16> peek; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    
    state start {
        m.peek = p.lookahead<bit<16>>();
        bit<8> n = p.lookahead<bit<8>>();
        p.extract(hdr.h, (bit<32>) n);
        p.advance(8);
        transition accept;
    }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hdr.r = { m.peek, 0 };
        if (sm.parser_error == error.HeaderTooShort) { hdr.r.code = 1; }
        if (sm.parser_error == error.ParserInvalidArgument) { hdr.r.code = 2; }
        if (sm.parser_error == error.PacketTooShort) { hdr.r.code = 3; }
        hdr.copy = hdr.h;
        if (hdr.copy.isValid() && hdr.copy.v == hdr.h.v) { hdr.r.code = 9; }
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
