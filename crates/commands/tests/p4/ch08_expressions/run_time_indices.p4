// Sections 8.1 and 8.18: a run-time index is evaluated once, before anything is assigned.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
header e_t { bit<8> a; bit<8> b; }
header_union u_t { h_t h; e_t e; }
struct H { h_t h; e_t[3] s; u_t[2] u; }
struct M {}
struct t_t { bit<8> x; bit<8> y; }

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
t_t both(in bit<8> v) { return { v, v }; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        p.extract(hdr.s[hdr.s[0].a]);
        p.extract(hdr.u[1].h);
        p.extract(hdr.u[hdr.u[0].e.a].e);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    t_t[3] array;
    apply {
        sm.egress_spec = 1;
        // Its own field is the index.
        array[1] = { 2, 0x11 };
        array[2] = { 0, 0x22 };
        t_t t = { 1, 0 };
        t = array[t.x];
        hdr.h.a = t.x;
        hdr.h.b = t.y;
        array[0] = { 0, 0 };
        array[array[0].x] = { 1, 5 };
        hdr.h.c = array[0].y;
        array[0] = { 1, 5 };
        array[array[0].x] = array[array[1].x];
        hdr.h.c[7:4] = array[1].y[7:4];
        // Both calls are made once, the left one first.
        bit<8> i = 0;
        array[bump(i)] = both(bump(i));
        hdr.h.d = i;
        hdr.h.e = array[1].y;
        hdr.h.f = hdr.s[0].b;
        hdr.s[0].a = 0;
        hdr.s[hdr.s[0].a] = { 1, 2 };
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
