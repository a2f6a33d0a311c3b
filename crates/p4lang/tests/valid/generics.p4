#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct Pair<A, B> { A first; B second; } header G<T> { T v; bit<8> k; } header_union GU<T> { G<T> g; h_t h; } T pick<T>(in bool c, in T x, in T y) { return c ? x : y; } control Swap<T>(inout T a, inout T b) { apply { T t = a; a = b; b = t; } }
struct H { h_t h; G<bit<16>> g; GU<bit<8>> u; } struct M { Pair<bit<8>, Pair<bit<16>, bool>> p; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { m.p = { 1, { 2, true } }; h.h.a = pick(m.p.second.second, h.h.a, h.h.b); Swap<bit<8>>.apply(h.h.a, h.h.b); h.g = { 5, 6 }; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
