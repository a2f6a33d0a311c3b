#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { bit<16> o; hash(o, HashAlgorithm.crc16, (bit<16>)0, { h.h.a, h.h.b, 16w5 }, (bit<32>)1024); random(h.h.a, 8w0, 8w255); random<bit<8>>(h.h.b, 0, 10); digest<tuple<bit<8>, bit<8>>>(1, { h.h.a, h.h.b }); log_msg("a {}", {h.h.a}); log_msg("x"); assert(h.h.a == h.h.a); assume(true); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
