// Sections 12.7 and 13.10: conditions in parser states, with sub-parsers applied in them; locals keep their values.
#include <core.p4>
#include <v1model.p4>

header t_t { bit<8> kind; }
header a_t { bit<8> x; }
header b_t { bit<16> y; }
struct H { t_t t; a_t a; b_t b; a_t[2] s; t_t end; }
struct M {}

parser A(packet_in q, out a_t a, inout bit<8> count) {
    state start { q.extract(a); count = count + 1; transition accept; }
}
parser B(packet_in q, out b_t b, inout bit<8> count) {
    state start { q.extract(b); transition select(b.y) { 0: reject; default: more; } }
    state more { count = count + 0x10; transition accept; }
}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    A() one;
    B() two;
    bit<8> count = 0;
    state start {
        p.extract(hdr.t);
        if (hdr.t.kind[0:0] == 1) {
            bit<8> before = count;
            one.apply(p, hdr.a, count);
            if (hdr.t.kind[1:1] == 1) { two.apply(p, hdr.b, count); }
            count = count + before;
        } else if (hdr.t.kind == 4) {
            two.apply(p, hdr.b, count);
            A.apply(p, hdr.s[0], count);
            count = count + 0x20;
        } else {
            count = 0x80;
        }
        hdr.end.setValid();
        hdr.end.kind = count;
        transition accept;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
