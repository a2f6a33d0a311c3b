#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } header v_t { bit<8> len; varbit<320> o; } type bit<9> Port_t; typedef Port_t PP;
struct H { h_t h; v_t v; v_t w; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); b.extract(h.v, (bit<32>)(((bit<16>)h.h.a - 5) * 32)); verify(h.h.a >= 5, error.ParserInvalidArgument); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.w = h.v; if (h.w.o == h.v.o) { h.w.setInvalid(); } PP p = (PP)sm.ingress_port; sm.egress_spec = (bit<9>)p; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
