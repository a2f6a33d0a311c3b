// Section 8.25: a write to a header that is not valid, to the other member of a union, or beyond a stack changes nothing
// that is defined. Section 7.2.2: a Boolean in a header is one bit.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<6> rest; bool set; bool clear; }
header x_t { bit<8> v; }
header y_t { bit<8> v; }
header_union u_t { x_t x; y_t y; }
struct H { h_t h; x_t other; u_t u; x_t[2] s; }
struct M { }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        p.extract(hdr.u.x);
        p.extract(hdr.s.next);
        p.extract(hdr.s.next);
        transition accept;
    }
}

control V(inout H hdr, inout M m) {
    apply { }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.b = 0;
        hdr.other.v = 9;
        if (!hdr.other.isValid()) { hdr.h.b[0:0] = 1; }
        hdr.u.y.v = 9;
        if (hdr.u.x.isValid() && !hdr.u.y.isValid()) { hdr.h.b[1:1] = 1; }
        hdr.s[hdr.h.a].v = 9;
        hdr.s[hdr.h.a].setInvalid();
        if (hdr.s[0].isValid() && hdr.s[1].isValid()) { hdr.h.b[2:2] = 1; }
        hdr.h.set = true;
        hdr.h.clear = false;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { }
}

control C(inout H hdr, inout M m) {
    apply { }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
