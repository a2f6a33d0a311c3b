#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }

struct H { h_t h; }
struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { action a(bit<9> p, bit<8> q) { sm.egress_spec = p; h.h.a = q; } table t { key = { h.h.a ++ h.h.b : exact @name("k"); (h.h.c >> 2) : ternary @name("j"); } actions = { a; NoAction(); } size = 1 << 10; default_action = a(q = 1, p = 2); const entries = { (1, _) : a(1, 2); (16w3, 4 &&& 0xff) : a(q = 3, p = 4); } } apply { t.apply(); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
