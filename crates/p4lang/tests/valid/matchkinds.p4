#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { action a(bit<9> p) { sm.egress_spec = p; } table t { key = { h.h.a : exact; h.h.b : ternary; h.h.c : range; h.h.d : lpm; h.h.isValid() : exact; sm.ingress_port : optional; } actions = { a; NoAction; } size = 128; default_action = NoAction; } table r { key = { h.h.c : range; } actions = { a; NoAction; } const entries = { 1 .. 5 : a(1); 0x10 .. 0x20 : a(2); 7 : a(3); _ : NoAction(); } } apply { t.apply(); r.apply(); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
