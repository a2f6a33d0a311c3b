#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } error { MyErr, Other } match_kind { mine }
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); verify(h.h.a != 0, error.MyErr); transition select(b.length() > 20) { true : more; false : accept; } } state more { b.advance(8); error e = error.Other; if (e == error.Other) { m.x = 1; } transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { if (sm.parser_error == error.MyErr) { mark_to_drop(sm); return; } if (m.x == 1) exit; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
