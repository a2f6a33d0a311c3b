#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
enum E { A, B, C } enum bit<8> S { X = 1, Y = 2 }
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { E e = E.A; switch (e) { E.A: E.B: { h.h.b = 1; } default: { } } switch ((S)h.h.a) { S.X: { h.h.b = 2; } } S s = S.Y; h.h.a = s; if (s == S.X) { h.h.b = (bit<8>)S.Y; } } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
