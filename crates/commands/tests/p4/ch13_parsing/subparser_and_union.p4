#include <core.p4>
#include <v1model.p4>

header t_t { bit<8> kind; }
header a_t { bit<8> x; }
header b_t { bit<16> y; }
header_union U { a_t a; b_t b; }
struct H { t_t t; U u; t_t end; }
struct M { bit<8> x; bit<16> y; }

parser Body(packet_in q, in bit<8> kind, out U u)(bit<8> kind_a) {
    state start { transition select(kind) { kind_a: a; default: b; } }
    state a { q.extract(u.a); transition accept; }
    state b { q.extract(u.b); transition accept; }
}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    Body(8w1) body;
    state start { p.extract(hdr.t); body.apply(p, hdr.t.kind, hdr.u); transition tail; } state tail { p.extract(hdr.end); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        if (hdr.u.a.isValid()) { hdr.u.b.setValid(); hdr.u.b.y = 0x1234; }
        else if (hdr.u.isValid()) { hdr.u.a = { 0x77 }; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
