#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct S { bit<8> key; bit<8> apply; bit<8> state; bit<8> type; bit<8> entries; bit<8> actions; bit<8> priority; }
struct H { h_t h; } struct M { S s; bit<8> list; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { bit<8> key = 1; bit<8> state = 2; bit<8> priority = 3; apply { m.s.key = key; m.s.apply = state; m.s.priority = priority; h.h.a = m.s.key + m.s.apply + m.list; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
