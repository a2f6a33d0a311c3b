#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { @field_list(1, 2) bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { clone(CloneType.I2E, 5); clone3(CloneType.I2E, 5, { m.x, sm.ingress_port }); clone_preserving_field_list(CloneType.I2E, 5, 1); resubmit_preserving_field_list(2); resubmit({ m.x }); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply { recirculate({}); recirculate_preserving_field_list(1); truncate(32w60); clone3<tuple<bit<8>>>(CloneType.E2E, 3, {m.x}); } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
