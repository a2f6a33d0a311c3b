#include <core.p4>
#include <v1model.p4>
header H_t { bit<8> a; bit<8> b; }
struct H { H_t h; }
struct M { bit<16> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t sm) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t sm) {
    action set(bit<8> x) { h.h.b = x; }
    // Without an action selector these keys do nothing.
    table t { key = { m.x : selector; h.h.a : exact; } actions = { set; NoAction; } const entries = { (_, 1) : set(2); } }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
