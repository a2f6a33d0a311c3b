#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> x; } header b_t { bit<16> y; } header_union U { a_t a; b_t b; } struct H { U u; U[2] us; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.us.next.a); p.extract(h.us.next.b); p.extract(h.u.b); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { h.u.a.setValid(); h.u.a.x = 1; if (h.u.isValid()) { h.u.b = {3}; } U v; v = h.u; h.us[0] = v; if (h.us[1].b.isValid()) { h.us[1].b.setInvalid(); } if (h.u == v) {} } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.us); p.emit(h.u); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
