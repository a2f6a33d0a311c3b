// Chapter 18: the tables of a control in a control that is applied twice see the arguments of each application.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control inner(in bit<8> k, inout bit<8> r) {
    action set(bit<8> v) { r = v; }
    table t {
        key = { k : exact; }
        actions = { set; NoAction; }
        const entries = { 1: set(0x11); 2: set(0x22); }
    }
    apply { t.apply(); }
}
control middle(in bit<8> v, inout bit<8> r) {
    inner() i;
    apply { i.apply(v + 1, r); }
}
control outer(in bit<8> v, inout bit<8> r) {
    middle() m;
    apply { m.apply(v, r); }
}
control inner_t(in bit<8> k, inout bit<8> r);
control given(in bit<8> v, inout bit<8> r)(inner_t i) {
    apply { i.apply(v + 1, r); }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    outer() o;
    inner() i;
    given(i) first;
    given(i) second;
    middle() once;
    apply {
        sm.egress_spec = 1;
        o.apply(0, hdr.h.a);
        o.apply(1, hdr.h.b);
        first.apply(0, hdr.h.c);
        second.apply(1, hdr.h.d);
        once.apply(1, hdr.h.e);
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
