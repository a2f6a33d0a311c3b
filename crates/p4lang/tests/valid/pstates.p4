#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }

struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) { bit<8> cnt = 0; const bit<8> LIM = 3; h_t tmp; state start { b.extract(h.h); transition select(h.h.a) { 8w0x10 &&& 8w0xF0 : loop; 1 .. 5 : loop; 7 : one; _ : accept; } } @name("lp") state loop { b.extract(h.s.next); cnt = cnt + 1; transition select(h.s.last.a, cnt, h.s.lastIndex) { (_, LIM, _) : accept; (0, _, _) : loop; (_, _, 2) : accept; default : accept; } } state one { b.extract(tmp); h.s[1] = tmp; if (tmp.a == 1) { m.x = 3; } else if (tmp.b == 2) m.x = 4; else { m.x = 5; } transition reject; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
