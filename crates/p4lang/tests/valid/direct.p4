#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } control Del(inout bit<8> x) { apply { x = 2; } } parser Psub(packet_in b, out h_t h) { state start { b.extract(h); transition accept; } }
struct H { h_t h; h_t[2] s; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { Psub.apply(b, h.h); b.extract<h_t>(_); b.extract(h.s.next); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { Del.apply(h.h.a); h.s.push_front(1); h.s.pop_front(1); h.s[1] = {#}; h.s[0] = { 1, 2, 3, 4 }; h_t[2] z = { { 1, 2, 3, 4 }, ... }; h.s = z; bit<32> n = h.s.size; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
