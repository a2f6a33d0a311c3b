#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

struct Pair<T> { T first; T second; }
T pick<T>(in Pair<T> p, in bool left) { if (left) { return p.first; } return p.second; }
control Adder(inout bit<8> x)(bit<8> n) { apply { x = x + n; } }
control Twice(inout bit<8> x)(bit<8> n) { Adder(n) a; Adder(n + 1) b; apply { a.apply(x); b.apply(x); } }
control Fresh(inout bit<16> y) {
    action inc() { y = y + 1; }
    table t { actions = { inc; } default_action = inc(); }
    apply { t.apply(); }
}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    Twice(10) tw; Fresh() f;
    apply {
        sm.egress_spec = 1;
        tw.apply(hdr.h.a);
        Pair<bit<8>> p = { 3, hdr.h.a };
        hdr.h.b = pick(p, false);
        // One instance applied twice, and one made for the occasion.
        f.apply(hdr.h.c);
        f.apply(hdr.h.d[15:0]);
        Fresh.apply(hdr.h.c);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
