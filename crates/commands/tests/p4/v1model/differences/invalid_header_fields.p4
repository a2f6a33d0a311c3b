#include <core.p4>
#include <v1model.p4>

// A hash and a checksum over a field of a header that is not valid.
header h_t { bit<8> b; bit<8> hashed; bit<16> sum; }
struct H { h_t h; h_t gone; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.gone.setValid();
        hdr.gone.b = 7;
        hdr.gone.setInvalid();
        hash(hdr.h.hashed, HashAlgorithm.xor16, 8w0, { hdr.gone.b, hdr.h.b }, 32w0x10000);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control V(inout H hdr, inout M m) { apply {} }
control C(inout H hdr, inout M m) {
    apply { update_checksum(true, { hdr.gone.b, hdr.h.b }, hdr.h.sum, HashAlgorithm.csum16); }
}
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
