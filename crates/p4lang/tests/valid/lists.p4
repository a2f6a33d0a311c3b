#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct pr { bit<8> a; bit<16> c; } const tuple<bit<8>, bool> TT = { 3, true }; const pr PR = { c = 4, a = 5 }; const bit<8> X = PR.a + TT[0]; const pr Q = { a = 1, ... }; typedef tuple<bit<8>, pr> tp; extern EX { EX(list<pr> d); }
struct H { h_t h; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { tp t = { 1, { 2, 3 } }; h.h.a = t[1].a + X; pr p = (pr){ a = 1, c = 2 }; p = { 3, 4 }; if (p == { 3, 4 } || p == Q) { sm.egress_spec = 1; } h.h.c = ((pr){ a = 1, c = 2 }).c; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
