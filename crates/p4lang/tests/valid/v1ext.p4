#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct dg { bit<8> a; h_t h; bool q; } enum bit<8> E8 { A = 1 }
struct H { h_t h; }
struct M { bit<8> x; bit<16> n; dg d; bool q; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) {  state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { verify_checksum(h.h.isValid(), { h.h.a, h.h.b }, h.h.c, HashAlgorithm.csum16); verify_checksum_with_payload(true, { h.h.a }, h.h.c, HashAlgorithm.csum16); } }
control I(inout H h, inout M m, inout standard_metadata_t sm) { register<bool>(4) rb; register<int<8>>(4) ri; register<E8>(4) re; register<bit<48>>(8) rt; action a() { h.h.c = 3; exit; } apply { rb.write(0, true); rb.read(m.q, 0); int<8> z; ri.read(z, 1); E8 e; re.read(e, 0); rt.write(0, sm.ingress_global_timestamp); digest(1, m.d); digest<dg>(2, { 1, h.h, true }); clone3<M>(CloneType.I2E, 5, m); clone3(CloneType.I2E, 5, { m.x }); resubmit(m); resubmit_preserving_field_list(0); recirculate({ sm, m }); random(m.n, 0, 5); hash(m.n, HashAlgorithm.csum16, (bit<16>)0, m.d.h, (bit<16>)10); a(); } }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control U(inout H h, inout M m) { apply { update_checksum_with_payload(h.h.isValid(), { h.h.a, h.h.d }, h.h.c, HashAlgorithm.csum16); update_checksum(h.h.a == 1, { h.h.b, 8w0 }, h.h.c, HashAlgorithm.crc16); } }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
