#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
parser Sub(packet_in pk, out h_t o)(bit<8> n) { state start { pk.extract(o); transition select(o.a) { n: accept; _: more; } } state more { pk.advance(8); transition accept; } }
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) { Sub(8w4) s1; Sub(5) s2; state start { s1.apply(p, h.h); s2.apply(p, h.g); bit<16> l = p.lookahead<bit<16>>(); transition select(l) { 0 : accept; default: fin; } } state fin { transition reject; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply {  } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
