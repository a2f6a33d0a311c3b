#include <core.p4>
#include <v1model.p4>

// What docs/p4.md lists as different from the reference switch.
header half_t { bit<4> n; }
header h_t { bit<4> a; bit<8> b; bit<8> cell; bit<8> sum; }
struct H { half_t half; h_t h; h_t gone; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        // A header of half a byte, then half a byte skipped and half a byte read.
        p.extract(hdr.half);
        p.advance(4);
        p.extract(hdr.h);
        p.advance(4);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(4) cells;
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error != error.NoError) { sm.egress_spec = 2; }
        // Out of range: 0, whatever was there.
        cells.read(hdr.h.cell, 4);
        // The field of an invalid header counts with its stored value.
        hdr.gone.setValid();
        hdr.gone.b = 7;
        hdr.gone.setInvalid();
        hash(hdr.h.sum, HashAlgorithm.xor16, 8w0, { hdr.gone.b, hdr.h.b }, 32w0x10000);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr.half); p.emit(hdr.h); }
}

V1Switch(P(), C(), I(), E(), C(), D()) main;
