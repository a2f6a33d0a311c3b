#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } control Inner(inout bit<8> x)(bit<8> add, bool neg) { action bump() { x = x + add; } table t { actions = { bump; } default_action = bump(); } apply { if (neg) { x = ~x; } t.apply(); } } control Outer(inout bit<8> x, inout bit<8> y) { Inner(3, true) i1; Inner(add = 4, neg = false) i2; apply { i1.apply(x); i2.apply(y); } } parser Sub(packet_in b, out h_t h)(bool deep) { state start { b.extract(h); transition select(deep, h.a) { (true, 1) : next; default : accept; } } state next { transition accept; } }
struct H { h_t h; h_t k; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) { Sub(true) s1; Sub(false) s2; state start { s1.apply(b, h.h); s2.apply(b, h.k); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { Outer() o; apply { o.apply(h.h.a, h.h.b); sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
