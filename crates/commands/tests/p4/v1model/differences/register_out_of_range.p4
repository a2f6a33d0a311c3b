#include <core.p4>
#include <v1model.p4>

// A register that is read and written at an index out of range.
header h_t { bit<8> index; bit<8> cell; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(4) cells;
    apply {
        sm.egress_spec = 1;
        cells.write((bit<32>) hdr.h.index, 0x33);
        cells.read(hdr.h.cell, (bit<32>) hdr.h.index);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
