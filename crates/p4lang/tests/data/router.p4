#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type_; }
header ip_t { bit<4> v; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<3> fl; bit<13> off; bit<8> ttl; bit<8> proto; bit<16> csum; bit<32> src; bit<32> dst; }
struct H { eth_t eth; ip_t ip; }
struct M { bit<8> x; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {
  state start { b.extract(h.eth); transition select(h.eth.type_) { 0x800: ip; default: accept; } }
  state ip { b.extract(h.ip); transition accept; }
}
control V(inout H h, inout M m) { apply { verify_checksum(h.ip.isValid(), { h.ip.v, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.fl, h.ip.off, h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst }, h.ip.csum, HashAlgorithm.csum16); } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
  action drop() { mark_to_drop(s); }
  action fwd(bit<9> port, bit<48> dmac) { s.egress_spec = port; h.eth.src = h.eth.dst; h.eth.dst = dmac; h.ip.ttl = h.ip.ttl - 1; }
  table lpm { key = { h.ip.dst : lpm; } actions = { fwd; drop; NoAction; } default_action = drop(); size = 1024; }
  apply { if (h.ip.isValid() && h.ip.ttl > 1) { lpm.apply(); } else { drop(); } }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { update_checksum(h.ip.isValid(), { h.ip.v, h.ip.ihl, h.ip.tos, h.ip.len, h.ip.id, h.ip.fl, h.ip.off, h.ip.ttl, h.ip.proto, h.ip.src, h.ip.dst }, h.ip.csum, HashAlgorithm.csum16); } }
control D(packet_out b, in H h) { apply { b.emit(h.eth); b.emit(h.ip); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
