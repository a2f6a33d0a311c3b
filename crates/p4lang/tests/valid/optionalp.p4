#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { counter(16, CounterType.packets_and_bytes) c; register<bit<32>>(8) r; meter(4, MeterType.bytes) mt; direct_counter(CounterType.packets) dc; action a() { dc.count(); } table t { key = { h.h.a : exact; } actions = { a; NoAction; } counters = dc; } apply { c.count((bit<32>)h.h.a); bit<32> v; r.read(v, 1); r.write(index = 2, value = v + 1); bit<2> col; mt.execute_meter(0, col); t.apply(); mark_to_drop(sm); random(h.h.c, 16w0, 16w100); truncate(100); assert(h.h.a != 5); assume(h.h.b != 6); log_msg("a {}", { h.h.a }); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
