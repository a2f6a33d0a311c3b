#include <core.p4>
#include <v1model.p4>

header h_t { bit<72> text; bit<16> crc16; bit<32> crc32; bit<16> sum; bit<16> xor; bit<16> id; bit<16> mod; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hash(hdr.h.crc16, HashAlgorithm.crc16, 16w0, { hdr.h.text }, 32w0x10000);
        hash(hdr.h.crc32, HashAlgorithm.crc32, 32w0, { hdr.h.text }, 33w0x1_0000_0000);
        hash(hdr.h.sum, HashAlgorithm.csum16, 16w0, { hdr.h.text }, 32w0x10000);
        hash(hdr.h.xor, HashAlgorithm.xor16, 16w0, { hdr.h.text }, 32w0x10000);
        hash(hdr.h.id, HashAlgorithm.identity, 16w0, { 8w0x12, 4w3, 4w4 }, 32w0x10000);
        hash(hdr.h.mod, HashAlgorithm.identity, 16w100, { 8w77 }, 16w10);
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
