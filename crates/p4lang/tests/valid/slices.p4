#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.h.a[3:0] = h.h.b[7:4]; h.h.c = h.h.a ++ h.h.b; h.h.d[15:8] = h.h.a; h.h.d = (bit<32>)(int<32>)(int<8>)h.h.a; int<8> s = -5; h.h.b = (bit<8>)(s >> 1); h.h.c = 16w0xff00 | (bit<16>)h.h.a; h.h.d = h.h.d << h.h.a[4:0]; h.h.d = 32w7 |-| 32w9; bool q = h.h.a > 3 && !(h.h.b == 4) || h.h.c <= 16; h.h.a = q ? 8w1 : 0; h.h.b[2+:4] = 5; const int N = 4; h.h.c[N+3:N] = h.h.a[N-1:0]; bit<(N*4)> w = 3; h.h.c = w; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
