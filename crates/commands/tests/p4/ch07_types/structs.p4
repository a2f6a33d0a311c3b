// Section 7.2: structs in structs, tuples, generic structs, defaults with `...`, equality of all of them.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct inner_t { bit<8> x; bit<8> y; }
struct outer_t { inner_t left; inner_t right; bool flag; }
struct pair_t<T, U> { T first; U second; }
struct M { outer_t o; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        outer_t o = { left = { x = hdr.h.a, y = hdr.h.b }, ... };
        outer_t copy = o;
        copy.right = copy.left;
        o.left.x = 0xff;                            // a copy is a copy
        hdr.h.a = copy.right.x;
        tuple<bit<8>, inner_t> t = { 7, copy.left };
        hdr.h.b = t[0] + t[1].y;
        pair_t<bit<8>, inner_t> p = { first = 3, second = { 1, 2 } };
        pair_t<bit<8>, pair_t<bit<8>, bool>> q = { 4, { 5, true } };
        hdr.h.c = p.second.x ++ (p.first + q.second.first);
        m.o = { copy.left, copy.right, q.second.second };
        hdr.h.d = 0;
        if (m.o.left == m.o.right) { hdr.h.d[0:0] = 1; }
        if (m.o == o) { hdr.h.d[1:1] = 1; }
        if (m.o.left == { x = hdr.h.a, y = copy.left.y }) { hdr.h.d[2:2] = 1; }
        if (t == { 7, copy.left }) { hdr.h.d[3:3] = 1; }
        if (o.right.x == 0 && !o.flag) { hdr.h.d[4:4] = 1; }
        if (m.o.flag) { hdr.h.d[5:5] = 1; }
        if ({ y = copy.left.y, x = hdr.h.a } == m.o.left) { hdr.h.d[6:6] = 1; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
