#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } enum bit<8> K { A = 1, B = 2 }
struct H { h_t h; h_t[3] s; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { for (bit<8> i = 0; i < 8; i += 1) { h.h.b = h.h.b + i; } for (bit<8> j in 1 .. 4) { if (j == 2) continue; h.h.a ^= j; } for (h_t e in h.s) { if (!e.isValid()) break; h.h.d += (bit<32>)e.a; } for (bit<8> q in { 1, 2, 3 }) { h.h.c += (bit<16>)q; } @unroll for (int<8> k in -3 .. 3) { if (k < 0) h.h.a = 1; } sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
