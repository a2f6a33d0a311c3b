#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } action global_act(inout bit<8> x, bit<8> d) { x = x + d; } const bit<8> C8 = 8w0xff;
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { bit<8> tmp = 3; action a1(inout bit<8> x, in bit<8> y, bit<8> dat) { x = y + dat; } action a2() { a1(h.h.a, 3, tmp); global_act(h.h.b, C8); if (h.h.a == 1) { return; } } table t { key = { tmp : exact @name("tmp"); h.h.d[7:0] : ternary; h.h.c & 0xf : exact; } actions = { a1(h.h.a, tmp); a2; global_act(h.h.b); NoAction; } const default_action = a1(h.h.a, tmp, 5); } apply { switch (t.apply().action_run) { a1: { h.h.b = 1; } a2: global_act: { } default: { } } a1(h.h.b, 1, 2); sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
