#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header o { bit<8> k; } header_union u_t { o x; h_t y; } struct grp { o a; o[2] s; u_t u; }
struct H { h_t h; grp g; u_t[2] us; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h.h); b.emit(h.g); b.emit(h.us); b.emit(h.g.s[1]); if (h.h.a == 1) { b.emit(h.g.u); } } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
