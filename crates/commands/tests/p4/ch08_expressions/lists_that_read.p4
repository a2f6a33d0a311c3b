// Section 8.13: the values of a list are read before any of them is assigned.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
header e_t { bit<8> a; }
header v_t { varbit<32> v; }
struct stacks_t { e_t[2] p; e_t[2] q; }
struct H { h_t h; stacks_t s; v_t v; v_t w; }
struct M {}
struct n_t { bit<8> x; bit<8> y; }
struct t_t { bit<8> a; n_t n; }
struct arrays_t { n_t[2] p; n_t[2] q; }
struct varbits_t { varbit<32> v; varbit<32> w; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        p.extract(hdr.s.p.next);
        p.extract(hdr.s.p.next);
        p.extract(hdr.s.q.next);
        p.extract(hdr.v, 8);
        p.extract(hdr.w, 24);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        t_t t = { hdr.h.a, { hdr.h.b, hdr.h.c } };
        t = { t.n.x, { t.a, 1 } };
        hdr.h.a = t.a;
        hdr.h.b = t.n.x;
        hdr.h.c = t.n.y;
        hdr.s = { hdr.s.q, hdr.s.p };
        arrays_t r;
        r.p[0] = { 1, 2 };
        r.p[1] = { 3, 4 };
        r.q[0] = { 5, 6 };
        r.q[1] = { 7, 8 };
        r = { r.q, r.p };
        hdr.h.d = r.p[hdr.h.f].y;
        hdr.h.e = r.q[hdr.h.f].x;
        varbits_t b;
        b.v = hdr.v.v;
        b.w = hdr.w.v;
        b = { b.w, b.v };
        hdr.v.v = b.v;
        hdr.w.v = b.w;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
