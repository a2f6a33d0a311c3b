#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } enum bit<8> K { A = 1, B = 2, C = 3 } enum P2 { X, Y }
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { K k = (K)h.h.a; P2 p = P2.X; switch (k) { K.A: { p = P2.Y; } K.B: K.C: { h.h.b = (bit<8>)k; } default: {} } switch (p) { P2.X: { h.h.a = 1; } P2.Y: { h.h.a = K.C; } } switch (h.h.c) { 1: { h.h.c = 2; } 0x10: 0x20: { h.h.c = 3; } } switch (sm.parser_error) { error.NoError: { sm.egress_spec = 1; } default: { sm.egress_spec = 2; } } } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
