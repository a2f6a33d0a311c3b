#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }
const bit<8> A = 3; const bit<16> B = (bit<16>)A << 2; const bool C = A == 3; typedef bit<8> by; type bit<8> nt; const nt N = (nt)5; const int Z = 1 << 40;
parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { h.h.a = A; h.h.c = B; nt n = (nt)h.h.a; if (n == N) { h.h.b = (bit<8>)n; } h.h.c = (bit<16>)(Z >> 38); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
