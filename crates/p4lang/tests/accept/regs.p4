#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) { register<bit<32>>(1024) r; counter(10, CounterType.packets) c; meter(10, MeterType.bytes) m1; direct_counter(CounterType.packets_and_bytes) dc; direct_meter<bit<8>>(MeterType.packets) dm; action x() { dc.count(); dm.read(m.x); } table t { key = { h.h.a : ternary; } actions = { x; } counters = dc; meters = dm; } bit<32> v; apply { r.read(v, 3); r.write((bit<32>)h.h.a, v + 1); c.count(1); m1.execute_meter<bit<8>>(2, m.x); t.apply(); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
