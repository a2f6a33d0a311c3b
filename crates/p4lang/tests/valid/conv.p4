#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
const int BIG = 1 << 70; const bit<128> W = (bit<128>)BIG; const int NEG = -7; const int<8> S = NEG; const bool T = (bool)1; const bit<1> O = (bit<1>)T; struct S2 { error e; varbit<16> v; }
struct H { h_t h; }
struct M { S2 s; tuple<varbit<16>, error> t; bool q; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.h.a = (bit<8>)(5); h.h.b = (bit<8>)(bit<1>)m.q; m.s.e = error.NoError; h.h.c = (bit<16>)(bit<8>)(int<8>)h.h.a; h.h.d = -h.h.d; h.h.a = +h.h.a; if (m.q == (h.h.a == 3)) { sm.egress_spec = 1; } h.h.a = (h.h.a == 1 ? (h.h.b == 2 ? 8w3 : 4) : 5); h.h.c = (bit<16>)S[3:0]; h.h.c = (bit<16>)(BIG >> 60); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
