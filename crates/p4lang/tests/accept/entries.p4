#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) { action a(bit<8> v) { h.h.b = v; } table t { key = { h.h.a : exact; h.h.c : lpm; h.h.b : ternary; } actions = { a; } const entries = { (1, 16w0x100 &&& 0xff00, _) : a(1); (2, _, 3) : a(2); (3, 4, 5 &&& 7) : a(3) @foo; } } table r { key = { h.h.a : range; h.h.b : optional; } actions = { a; @defaultonly NoAction; } entries = { const priority = 10 : (1 .. 5, _) : a(1); priority=20: (7, 8) : a(2); } largest_priority_wins = false; priority_delta = 5; size = 10; } apply { t.apply(); r.apply(); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
