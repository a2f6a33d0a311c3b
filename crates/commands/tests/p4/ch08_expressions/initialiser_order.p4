// Sections 8.1 and 8.15: values of an initialiser are evaluated as they are written, not as its fields are declared.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> x; bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; }
header e_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M {}
struct pair_t { bit<8> a; bit<8> b; }
struct more_t { bit<8> a; pair_t p; bit<8> c; }

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        pair_t p = { b = bump(hdr.h.x), a = hdr.h.x };
        hdr.h.a = p.a;
        hdr.h.b = p.b;
        e_t e = { b = hdr.h.x, a = bump(hdr.h.x) };
        hdr.h.c = e.a;
        hdr.h.d = e.b;
        more_t q = { c = hdr.h.x, p = { b = bump(hdr.h.x), a = bump(hdr.h.x) }, ... };
        hdr.h.e = q.c;
        hdr.h.f = q.p.a;
        hdr.h.g = q.p.b;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
