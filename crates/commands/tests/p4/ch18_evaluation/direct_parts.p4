// Sections 14 and 18: `C.apply()` in a control that is applied twice, or in a loop, is one instance, with one state.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control tally(in bit<8> by, inout bit<8> total) {
    register<bit<8>>(1) sum;
    apply {
        sum.read(total, 0);
        total = total + by;
        sum.write(0, total);
    }
}
control rounds(in bit<8> by, inout bit<8> total) {
    register<bit<8>>(1) count;
    action add(bit<8> v) { total = total + v; }
    table t {
        key = { by : exact; }
        actions = { add; NoAction; }
        const entries = { 1: add(0x10); 2: add(0x20); }
    }
    apply {
        count.read(total, 0);
        count.write(0, total + 1);
        t.apply();
    }
}
control middle(in bit<8> by, inout bit<8> total) {
    apply { tally.apply(by, total); }
}
control outer(in bit<8> by, inout bit<8> first, inout bit<8> second) {
    apply {
        tally.apply(by, first);
        middle.apply(by + 1, second);
    }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    outer() o;
    apply {
        sm.egress_spec = 1;
        o.apply(1, hdr.h.a, hdr.h.b);
        o.apply(3, hdr.h.c, hdr.h.d);
        for (bit<8> by in (list<bit<8>>) { 1, 2 }) { rounds.apply(by, hdr.h.e); }
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
