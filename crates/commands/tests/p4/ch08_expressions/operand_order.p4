// Sections 8.1 and 18.4: operands are evaluated from left to right, wherever there are several.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; }
header e_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct H { h_t h; e_t e; }
struct M { bit<8> x; }
struct n_t { bit<8> x; bit<8> y; }
struct t_t { n_t n; bit<8> z; }

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        m.x = hdr.h.a;
        transition select(m.x, bump(m.x)) {
            (1, 2): both;
            default: accept;
        }
    }
    state both { p.extract(hdr.e); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(8) r;
    action set(bit<8> v) { hdr.h.b = v; }
    table t {
        key = { m.x : exact @name("x"); bump(m.x) : exact @name("y"); }
        actions = { set; NoAction; }
        const entries = { (2, 3): set(0x23); (3, 3): set(0x33); }
    }
    apply {
        sm.egress_spec = 1;
        t.apply();                                      // leaves 3 in m.x
        r.write((bit<32>) m.x, bump(m.x));              // the fourth cell: 4
        r.read(hdr.h.c, 3);
        t_t s = { { m.x, 1 }, bump(m.x) };
        hdr.h.d = s.n.x;
        hdr.h.e = s.z;
        for (bit<8> k in m.x .. bump(m.x)) { hdr.h.f = hdr.h.f + 1; }
        // The position is that from before the call, the rest of the bits that from after it.
        bit<8> at = 3;
        hdr.e.a[at +: 4] = bump(at)[3:0];
        at = 4;
        hdr.e.b[at +: 4] = bump(hdr.e.b)[3:0];
        hdr.e.c[at +: 4] += bump(hdr.e.c)[3:0];
        n_t[2] array;
        array[0] = { 0, 0 };
        array[1] = { 0, 0 };
        at = 0;
        array[at].x[at +: 4] = bump(at)[3:0];
        hdr.e.d = array[0].x ++ array[1].x == 0x0100 ? 8w1 : 8w2;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
