// Chapter 18: every instance has a state and a control-plane name of its own; one that is given as an argument is shared.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control cell(inout bit<8> v)(register<bit<8>> shared) {
    register<bit<8>>(1) own;
    action add(bit<8> n) { v = v + n; }
    table t { key = { v : exact; } actions = { add; NoAction; } default_action = add(1); }
    apply {
        t.apply();
        own.write(0, v);
        bit<8> sum;
        shared.read(sum, 0);
        shared.write(0, sum + v);
    }
}
control pair(inout bit<8> x, inout bit<8> y)(register<bit<8>> shared) {
    cell(shared) left;
    cell(shared) right;
    apply { left.apply(x); right.apply(y); }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(1) total;
    pair(total) one;
    @name("other") pair(total) two;
    bit<8> low;
    bit<8> high;
    apply {
        sm.egress_spec = 1;
        high = hdr.h.c[15:8];
        low = hdr.h.c[7:0];
        one.apply(hdr.h.a, hdr.h.b);
        two.apply(high, low);
        hdr.h.c = high ++ low;
        total.read(low, 0);
        hdr.h.d[7:0] = low;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
