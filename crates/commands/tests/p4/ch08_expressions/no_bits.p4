#include <core.p4>
#include <v1model.p4>

header i_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header o_t { bit<8> r; bit<8> s; bit<8> t; bit<8> u; }
header x_t { bit<8> v; }

header z_t { bit<0> z; bit<8> v; bit<0> y; }

struct H { i_t i; o_t o; z_t z; }
struct M { bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.i); p.extract(hdr.z); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.o = { 0, 0, 0, 0 };
        bit<0> q = hdr.z.z;
        hdr.o.r = (q <= 0 ? 8w1 : 0) | (q >= hdr.z.y ? 8w2 : 0) | (0w0 <= q ? 8w4 : 0) | (q < hdr.z.y ? 8w8 : 0) | (q > 0 ? 8w16 : 0);
        hdr.o.s = (~q == 0 ? 8w1 : 0) | (~q == q ? 8w2 : 0) | ((~q ++ hdr.z.v) == 0xaa ? 8w4 : 0) | ((-q) == q ? 8w8 : 0);
        hdr.o.t = (bit<8>) ~q;
        hdr.o.u = 8w1 << ~q;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }

control C(inout H hdr, inout M m) { apply {} }

control D(packet_out p, in H hdr) { apply { p.emit(hdr.o); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
