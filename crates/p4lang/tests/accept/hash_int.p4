#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { bit<32> r; hash(r, HashAlgorithm.crc32, 32w0, {h.h.a, h.h.b}, 32w0xffffffff); hash(h.h.c, HashAlgorithm.identity, 16w0, h.h.a, 16w10); hash(h.h.c, HashAlgorithm.csum16, 16w0, {h.h}, 16w1000); } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
