#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition accept; } }
control MyV(inout H h, inout M m) { apply { verify_checksum(true, {h.h.a, h.h.b}, h.h.c, HashAlgorithm.csum16); verify_checksum_with_payload(h.h.isValid(), {h.h}, h.h.c, HashAlgorithm.csum16); } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply {  } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply { update_checksum(true, {h.h.a, h.h.b}, h.h.c, HashAlgorithm.csum16); update_checksum_with_payload(true, {h.h.a, h.h.b}, h.h.c, HashAlgorithm.crc16); update_checksum<tuple<bit<8>, bit<8>>, bit<16>>(true, {h.h.a, h.h.b}, h.h.c, HashAlgorithm.csum16); } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
