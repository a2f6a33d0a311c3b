// A tuple among the keys of a select: its elements are matched one by one, `_` takes all of them.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> res; }
struct H { h_t h; }
struct M { bit<8> which; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a, { hdr.h.b, { hdr.h.c, hdr.h.d } }) {
            (1, { 2, { 3, 4 } }): one;
            (1 .. 9, { 2, { 0, 0 } }): two;
            (0xf0 &&& 0xf0, { 5, { 3, 4 } }): three;
            (7, default): four;
            _: accept;
        }
    }
    state one { m.which = 1; transition accept; }
    state two { m.which = 2; transition accept; }
    state three { m.which = 3; transition accept; }
    state four { m.which = 4; transition one_more; }
    state one_more { transition select({ hdr.h.a, hdr.h.d }) { { 7, 9 }: five; _: accept; } }
    state five { m.which = 5; transition accept; }
}

control V(inout H hdr, inout M m) { apply { } }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    // One key may be written as a tuple of one.
    action add(bit<8> v) { hdr.h.res = hdr.h.res + v; }
    table t { key = { hdr.h.a : exact; } actions = { add; NoAction; } const entries = { { 7 } : add(0x10); { 4w0 ++ 4w8 } : add(0x20); } }
    apply { sm.egress_spec = 1; hdr.h.res = m.which; t.apply(); }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
