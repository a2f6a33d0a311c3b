#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { h.h.a = h.h.b > 3 ? h.h.a : 8w4; h.h = h.h.a == 1 ? h.h : h.g; bool b = h.h.isValid() ? true : h.g.isValid(); h.h.c = (h.h.a == 1 ? 16w1 : 2) + 1; m.x = (bit<8>)(bit<1>)b; bit<1> q = (bit<1>)(h.h.a == 2); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
