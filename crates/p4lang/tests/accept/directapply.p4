#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
control C(inout bit<8> x) { action q() { x = 3; } table t { key = { x : exact @name("xx"); } actions = { q; } const default_action = q; } apply { t.apply(); } }
control K(inout bit<8> x) { apply { x = x + 1; } }
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { C.apply(h.h.a); K.apply(h.h.a); K.apply(h.h.b); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
