#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> data; bit<16> crc32; bit<8> crc16; bit<8> sum; bit<72> wide; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

// The remainder is the whole hash's, whatever the widths of result, base and max.
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hash(hdr.h.crc32, HashAlgorithm.crc32, 16w0, { hdr.h.data }, 16w100);
        hash(hdr.h.crc16, HashAlgorithm.crc16, 8w0, { hdr.h.data }, 8w10);
        hash(hdr.h.sum, HashAlgorithm.crc32, 8w200, { hdr.h.data }, 8w100);
        hash(hdr.h.wide, HashAlgorithm.crc32, 72w0, { hdr.h.data }, 16w100);
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
