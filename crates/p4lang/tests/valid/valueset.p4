#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct vk { @match(ternary) bit<8> a; @match(exact) bit<16> c; } struct one { @match(range) bit<8> a; }
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) { value_set<vk>(4) vs; value_set<bit<8>>(8) s1; value_set<tuple<bit<8>, bit<16>>>(2) s2; state start { b.extract(h.h); transition select(h.h.a, h.h.c) { vs : more; s2 : more; (1, _) : more; (2 .. 3, 4 &&& 0xf) : accept; default : reject; } } state more { transition select(h.h.b) { s1 : accept; default : accept; } } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
