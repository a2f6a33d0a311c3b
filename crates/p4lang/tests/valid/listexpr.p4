#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } 
struct H { h_t h; } struct M { bit<8> x; bit<16> n; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t sm) { apply { bit<16> r; hash(r, HashAlgorithm.crc16, 16w0, { h.h.a, h.h.b, { h.h.c, 8w5 }, (bit<8>)3 }, 16w1000); h.h.c = r; sm.egress_spec = 1; digest<tuple<bit<8>, bit<16>>>(1, { h.h.a, h.h.c }); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
