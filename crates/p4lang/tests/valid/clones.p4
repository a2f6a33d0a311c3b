#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct keep { @field_list(1, 2) bit<8> x; @field_list(2) bit<16> n; }
struct H { h_t h; } struct M { keep k; @field_list(1) bit<8> y; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; clone(CloneType.I2E, 5); clone_preserving_field_list(CloneType.I2E, 32w5, 1); if (sm.instance_type == 0) { resubmit_preserving_field_list(2); } } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply { recirculate_preserving_field_list(1); } }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
