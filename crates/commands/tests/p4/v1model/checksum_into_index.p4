// Section 6.8: what a checksum is of is read before the index of the place where it goes.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> a; }
header e_t { bit<16> sum; }
struct H { h_t h; e_t[2] s; }
struct M {}

bit<16> bump(inout bit<16> x) { x = x + 1; return x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); p.extract(hdr.s.next); p.extract(hdr.s.next); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) {
    apply { update_checksum(true, { hdr.h.a }, hdr.s[bump(hdr.h.a)].sum, HashAlgorithm.csum16); }
}
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
