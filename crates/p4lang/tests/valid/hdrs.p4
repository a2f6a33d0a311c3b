#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
enum bit<4> N4 { A = 1, B = 0xf } struct in_t { bit<3> x; bool y; } typedef bit<8> typedef_t; type bit<8> nt; header k_t { N4 n; in_t i; int<8> s; bit<8> r; typedef_t z; nt w; }
struct H { h_t h; k_t k; k_t[2] ks; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); b.extract(h.k); b.extract(h.ks.next); b.extract(h.ks.next); tuple<bit<8>, bit<8>> l = b.lookahead<tuple<bit<8>, bit<8>>>(); transition select(h.k.n, h.k.i.y, h.k.w, l[0]) { (N4.A, true, (nt)3, 1) : accept; (N4.B &&& N4.B, _, _, _) : accept; default : reject; } } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.k.n = N4.B; h.k.i = { 1, true }; h.k.i.x = 3; h.k.w = (nt)h.h.a; h.ks[0] = h.k; h.ks[h.h.a].s = -1; h.ks[0].r = 3; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
