// Section 8.26: what `...` leaves out is zero, also where it is compared and computed with.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; bit<8> h; bit<8> i; bit<8> j; }
header v_t { bit<8> n; varbit<16> v; }
struct H { h_t h; v_t v; }
struct M {}
struct s_t { bit<8> a; bit<8> b; }
struct n_t { s_t s; bit<8> c; bool d; }
struct w_t { v_t h; bit<8> x; }

const s_t S = { a = 5, ... };
const n_t N = { c = 1, ... };
const bit<8> K = S.b + N.s.a + 3;

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        s_t s = { hdr.h.a, hdr.h.b };
        hdr.h.c = s == { a = 5, ... } ? 8w1 : 2;
        hdr.h.d = hdr.h.b == S.b ? 8w1 : 2;
        hdr.h.e = hdr.h.b & S.b;
        hdr.h.f = hdr.h.b | N.s.b;
        n_t n = { s, 1, false };
        hdr.h.g = n == { c = 1, ... } ? 8w1 : 2;
        hdr.h.h = K;
        w_t w = { x = hdr.h.a, ... };
        hdr.h.i = w == { x = 5, ... } ? 8w1 : 2;
        w.h.setValid();
        w.h.n = 0;
        hdr.h.j = w.h == { n = 0, ... } ? 8w1 : 2;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
