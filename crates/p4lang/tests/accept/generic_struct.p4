#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
struct Pair<T> { T a; T b; } header G<T> { T x; bit<8> y; }
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) { Pair<bit<8>> pr; G<bit<16>> g; apply { pr = { a = 1, b = 2 }; g = {3, 4}; h.h.a = pr.a + g.y; Pair<bit<8>> q = {1,2}; if (q == pr) { h.h.b = 1; } } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
