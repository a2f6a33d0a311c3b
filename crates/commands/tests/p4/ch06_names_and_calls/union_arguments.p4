// Sections 6.8 and 8.20: an argument that is a member of a header union stays as it was while another member changes.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; }
header a_t { bit<8> a; }
header b_t { bit<8> b; }
header_union u_t { a_t a; b_t b; }
struct H { h_t h; u_t u; u_t[2] s; }
struct M {}

bool first(inout a_t a, in b_t b) { a.setValid(); return b.isValid(); }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); p.extract(hdr.u.b); p.extract(hdr.s.next.b); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.a = first(hdr.u.a, hdr.u.b) ? 8w1 : 2;
        hdr.h.b = hdr.u.b.isValid() ? 8w1 : 2;
        hdr.h.c = first(hdr.s[0].a, hdr.s[0].b) ? 8w1 : 2;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
