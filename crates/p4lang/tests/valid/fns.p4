#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
T id<T>(in T x) { T y = x; return y; } void two<A, B>(in A a, inout B b2, out bit<8> o) { o = 3; } bit<8> fact(in bit<8> n) { bit<8> r = 1; for (bit<8> i in 1 .. n) { r = r * i; } return r; } bool both(in bool a, in bool c) { if (!a) return false; return c; } tuple<bit<8>, bool> mk(in bit<8> x) { return { x, true }; } h_t hd() { return { 1, 2, 3, 4 }; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.h.a = id(h.h.b); h.h.b = id<bit<8>>(3); two<bit<8>, bit<16>>(1, h.h.c, h.h.a); two(h.h.a, h.h.c, _); h.h.a = fact(5); if (both(h.h.isValid(), true)) { tuple<bit<8>, bool> t = mk(1); h.h.b = t[0]; } h.h = hd(); h.h.a = hd().b; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
