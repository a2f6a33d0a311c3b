#include <core.p4>
#include <v1model.p4>
struct inner { bit<4> p; bit<4> q; } header h_t { inner i; bit<8> a; bool f; bit<7> r; int<8> s; }
struct H { h_t h; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { h.h.i.p = 3; inner t = h.h.i; t.q = 1; h.h.i = t; h.h.f = !h.h.f; h.h.s = -h.h.s; if (h.h.s < 0) { h.h.a = 1; } } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
