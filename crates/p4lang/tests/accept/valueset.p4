#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
struct vs_t { bit<8> a; @match(ternary) bit<16> c; }
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) { value_set<bit<8>>(4) vs; value_set<vs_t>(4) vs2; value_set<tuple<bit<8>, bit<16>>>(4) vs3; state start { p.extract(h.h); transition select(h.h.a) { vs: two; default: accept; } } state two { transition select(h.h.a, h.h.c) { vs2: accept; vs3: accept; (1, _): accept; (vs, 5): accept; _ : reject; } } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply {  } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
