#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } header o1 { bit<8> k; } header o2 { bit<8> k; bit<8> l; } header_union opt { o1 x; o2 y; }
struct H { h_t h; opt[4] opts; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition opts; } state opts { transition select(b.lookahead<bit<8>>()) { 0 : accept; 1 : one; 2 : two; default : accept; } } state one { b.extract(h.opts.next.x); transition opts; } state two { b.extract(h.opts.next.y); transition opts; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { if (h.opts[0].x.isValid()) { h.opts[1].y.setValid(); h.opts[1].y = { 2, 3 }; } if (h.opts[0].isValid()) { h.opts[0] = h.opts[1]; } sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
