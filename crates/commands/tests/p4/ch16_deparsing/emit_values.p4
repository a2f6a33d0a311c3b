// Section 16.1: the argument of `emit` is any header, whether it is stored or not.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct G { h_t one; h_t two; }
struct M {}
const h_t FIXED = { 3, 4 };

h_t made(in bit<8> a) { return { a, 8 }; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit((h_t) { 1, 2 }); p.emit(FIXED); p.emit(hdr.h); p.emit((G) { hdr.h, { hdr.h.a, hdr.h.b } }); p.emit(made(7)); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
