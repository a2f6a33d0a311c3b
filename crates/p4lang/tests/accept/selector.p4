#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) { action a(bit<9> p) { sm.egress_spec = p; } action_selector(HashAlgorithm.crc16, 32w64, 32w10) sel; action_profile(32w16) prof; table t { key = { h.h.a : exact; h.h.b : selector; } actions = { a; } implementation = sel; } table u { key = { h.h.a : exact; } actions = { a; } implementation = prof; } @mode("fair") table v { key = { h.h.a: lpm; h.h.c : selector; } actions = {a; } implementation = action_selector(HashAlgorithm.identity, 32w64, 32w16); support_timeout = true; } apply { t.apply(); u.apply(); v.apply(); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
