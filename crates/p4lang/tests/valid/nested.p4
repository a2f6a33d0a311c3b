#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct in_t { bit<8> a; bool f; tuple<bit<8>, bit<16>> t; } struct out_t { in_t i; in_t[2] arr; }
struct H { h_t h; } struct M { out_t o; bit<8> x; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { m.o.i = { 1, true, { 2, 3 } }; m.o.arr[1] = m.o.i; m.o.arr[0].t = { 4, 5 }; h.h.a = m.o.i.t[0]; h.h.c = m.o.arr[1].t[1]; in_t z = { f = true, ... }; m.o.i = z; if (m.o.i == m.o.arr[0]) { h.h.b = 1; } sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
