// What `...` and `{#}` leave out counts in hashes and checksums as zero.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> a; bit<16> b; bit<16> c; bit<16> d; bit<8> e; }
header e_t { bit<8> x; bit<16> y; }
struct H { h_t h; }
struct M {}
struct d_t { bit<8> x; bit<16> y; }
struct n_t { bit<8> x; e_t h; d_t d; bool b; bit<7> z; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hash(hdr.h.a, HashAlgorithm.crc16, 16w0, (d_t) { x = 5, ... }, 32w0x10000);
        hash(hdr.h.b, HashAlgorithm.crc16, 16w0, { 8w5, 16w0 }, 32w0x10000);
        hash(hdr.h.c, HashAlgorithm.crc16, 16w0, (n_t) { x = 5, h = (e_t) {#}, ... }, 32w0x10000);
        hash(hdr.h.d, HashAlgorithm.crc16, 16w0, { 8w5, 56w0 }, 32w0x10000);
        hdr.h.e = hdr.h.a == hdr.h.b && hdr.h.c == hdr.h.d && hdr.h.a != hdr.h.c ? 8w1 : 2;
        hdr.h.a = 0;
        hdr.h.b = 0;
        hdr.h.c = 0;
        hdr.h.d = 0;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
