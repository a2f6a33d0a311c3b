#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } bit<8> f(in bit<8> x, in bit<8> y = 3, in bool z = false) { return z ? x : x + y; } void g(out bit<8> o, inout bit<8> io, in bit<8> i) { o = i; io = io + 1; }
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.h.a = f(1); h.h.b = f(x = 1, z = true); g(i = 3, io = h.h.a, o = h.h.b); g(_, h.h.a, 4); sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
