#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { action a(bit<9> p) { sm.egress_spec = p; } table t { key = { h.h.a : ternary; h.h.b : exact; } actions = { a; NoAction; } largest_priority_wins = false; priority_delta = 10; @noWarn("duplicate_priorities") entries = { const priority = 10: (0x01 &&& 0xf, 1) : a(1); (2, 2) : a(2); priority = 40 : (_, 3) : a(3); const (4, 4) : a(4); } } apply { t.apply(); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
