// Chapter 17: the architecture's package, with explicit type arguments and arguments by name; blocks whose types are
// instantiated before; parser and control types of our own that the blocks must fit.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> seen; }

parser own_parser_t<A, B>(packet_in p, out A a, inout B b, inout standard_metadata_t sm);
control step_t<T>(inout T data);

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm)(bit<8> marker) {
    state start { m.seen = marker; p.extract(hdr.h); transition accept; }
}
control plus(inout bit<8> v)(bit<8> n) { apply { v = v + n; } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm)(bool enabled) {
    plus(0x10) step;
    apply {
        sm.egress_spec = 1;
        hdr.h.a = m.seen;
        if (enabled) { step.apply(hdr.h.b); }
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch<H, M>(dep = D(), p = P(0x5a), vr = V(), eg = E(), ig = I(true), ck = C()) main;
