#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define FIELD(t, n) t n
#define CAT(a, b) a##b
#if V1MODEL_VERSION >= 20180101 && defined(MAX)
const int CAT(LIM, IT) = MAX(3, 5);
#else
#error "no"
#endif
#ifndef FOO
#define FOO 8
#elif FOO == 9
#endif
header x_t { FIELD(bit<FOO>, aa); }

struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { h.h.a = LIMIT; sm.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
