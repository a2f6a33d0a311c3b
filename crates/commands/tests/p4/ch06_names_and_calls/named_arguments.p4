// Section 6.8: named arguments are evaluated, and copied back, as they are written.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> x; bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; }
header v_t { bit<8> n; varbit<32> d; }
struct H { h_t h; v_t[2] v; }
struct M { bit<8> n; }

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
bit<8> minus(in bit<8> a, in bit<8> b) { return a - b; }
void two(out bit<4> a, out bit<8> b) { a = 1; b = 0x22; }
control difference(in bit<8> a, in bit<8> b, out bit<8> r) { apply { r = a - b; } }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        m.n = 0;
        p.extract(variableFieldSizeInBits = (bit<32>) m.n, variableSizeHeader = hdr.v[bump(m.n)]);
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(16) cells;
    difference() twice;
    action take(in bit<8> a, in bit<8> b) { hdr.h.f = a - b; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { take(b = bump(hdr.h.x), a = hdr.h.x); NoAction; }
        const default_action = take(b = bump(hdr.h.x), a = hdr.h.x);
    }
    apply {
        sm.egress_spec = 1;
        hdr.h.a = minus(b = bump(hdr.h.x), a = hdr.h.x);
        two(b = hdr.h.b, a = hdr.h.b[3:0]);
        cells.write(value = bump(hdr.h.x), index = (bit<32>) hdr.h.x);
        cells.read(hdr.h.c, (bit<32>) hdr.h.x);
        twice.apply(r = hdr.h.d, b = bump(hdr.h.x), a = hdr.h.x);
        twice.apply(b = bump(hdr.h.x), r = hdr.h.e, a = hdr.h.x);
        t.apply();
        hdr.h.g = hdr.v[1].n;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
