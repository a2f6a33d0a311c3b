// Arithmetic on numbers of 256 bits, and a product of 128.

#include <core.p4>
#include <v1model.p4>

header numbers_t { bit<256> a; bit<256> b; bit<256> sum; bit<128> product; }
struct headers_t { numbers_t n; }
struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.n); transition accept; }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        bit<256> sum = (h.n.a + h.n.b) ^ (h.n.a << 13);
        if (h.n.a < h.n.b) {
            sum = sum - h.n.a;
        }
        h.n.sum = sum;
        h.n.product = h.n.a[127:0] * h.n.b[127:0];
        s.egress_spec = 1;
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.n); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
