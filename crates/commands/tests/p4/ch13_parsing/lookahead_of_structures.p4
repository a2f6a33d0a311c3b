#include <core.p4>
#include <v1model.p4>

header i_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header o_t { bit<8> r; bit<8> s; bit<8> t; bit<8> u; }
header x_t { bit<8> v; }

struct Q_t { x_t a; bit<8> b; }

struct H { i_t i; o_t o; x_t x; x_t y; x_t z; }
struct M { bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.i);
        Q_t q = p.lookahead<Q_t>();
        hdr.x = q.a;
        x_t[2] both = p.lookahead<x_t[2]>();
        hdr.y = both[1];
        tuple<bit<8>, x_t> pair = p.lookahead<tuple<bit<8>, x_t>>();
        hdr.z = pair[1];
        m.x = q.b;
        transition accept;
    }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.o = { 0, 0, 0, 0 };
        hdr.o = { m.x, hdr.x.isValid() ? 8w1 : 0, hdr.y.isValid() ? 8w1 : 0, hdr.z.isValid() ? 8w1 : 0 };
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }

control C(inout H hdr, inout M m) { apply {} }

control D(packet_out p, in H hdr) { apply { p.emit(hdr.o); p.emit(hdr.x); p.emit(hdr.y); p.emit(hdr.z); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
