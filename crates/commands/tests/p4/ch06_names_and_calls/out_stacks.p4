#include <core.p4>
#include <v1model.p4>

header i_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header o_t { bit<8> r; bit<8> s; bit<8> t; bit<8> u; }
header x_t { bit<8> v; }

struct S_t { x_t[2] s; }
parser Sub(packet_in p, out x_t[4] s, out bit<8> n) {
    state start { p.extract(s.next); n = (bit<8>) s.lastIndex; transition accept; }
}
void second(out x_t[4] s) { s[1] = { 9 }; }
void none(out S_t w) { }

struct H { i_t i; o_t o; x_t[4] s; S_t w; }
struct M { bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    Sub() q;
    state start { p.extract(hdr.i); transition select(hdr.i.a) { 1: one; 2: two; default: three; } }
    // What was there is not valid any more, and its next element is the first.
    state one { p.extract(hdr.s.next); q.apply(p, hdr.s, m.x); transition accept; }
    state two { p.extract(hdr.s.next); q.apply(p, hdr.s, m.x); q.apply(p, hdr.s, m.x); transition accept; }
    state three {
        p.extract(hdr.s.next);
        second(hdr.s);
        p.extract(hdr.s.next);
        p.extract(hdr.w.s.next);
        p.extract(hdr.w.s.next);
        none(hdr.w);
        p.extract(hdr.w.s.next);
        transition accept;
    }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.o = { 0, 0, 0, 0 };
        hdr.o = { m.x, hdr.s[0].isValid() ? hdr.s[0].v : 0xee, hdr.s[1].isValid() ? hdr.s[1].v : 0xee,
                  (hdr.w.s[0].isValid() ? hdr.w.s[0].v : 0xe) + (hdr.w.s[1].isValid() ? 8w0x80 : 0) };
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }

control C(inout H hdr, inout M m) { apply {} }

control D(packet_out p, in H hdr) { apply { p.emit(hdr.o); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
