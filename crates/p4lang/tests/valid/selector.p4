#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { action set(bit<9> p) { sm.egress_spec = p; } action_profile(64) ap; action_selector(HashAlgorithm.crc32, 128, 10) as; table t1 { key = { h.h.a : exact; } actions = { set; NoAction; } implementation = ap; } @mode("fair") table t2 { key = { h.h.a : lpm; h.h.b : selector; h.h.c : selector; } actions = { set; NoAction; } implementation = as; support_timeout = true; } apply { t1.apply(); if (!t2.apply().hit) { mark_to_drop(sm); } } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
