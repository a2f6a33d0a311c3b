#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
control C1(inout bit<8> x)(bit<8> k) { apply { x = x + k; } }
struct H { h_t h; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { @name("foo.bar") C1(k = 8w3) c; @name(".abs") table t { actions = { NoAction; } } @name("cnt") counter(size = 4, type = CounterType.bytes) k; apply { c.apply(x = h.h.a); t.apply(); k.count(index = 2); sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
