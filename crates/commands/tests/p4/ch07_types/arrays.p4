#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> at; bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct pair_t { bit<8> x; tuple<bool, bit<7>> y; }
struct H { h_t h; }
struct M { bit<8> kept[4]; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

bit<8> sum(in bit<8> list[4]) {
    bit<8> total = 0;
    for (bit<8> item in list) { total = total + item; }
    return total;
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    pair_t[2] pairs;
    action set(in bit<8>[2] values) { hdr.h.d = values[1]; }
    apply {
        sm.egress_spec = 1;
        bit<8>[4] v = { 1, 2, 3, 4 };
        // Past the end: nothing is written, and zero is read.
        v[hdr.h.at] = 0x40;
        m.kept = v;
        v[0] = 0x80;
        hdr.h.a = m.kept[hdr.h.at];
        hdr.h.b = sum(m.kept);
        pairs[hdr.h.at] = { 5, { true, 3 } };
        pairs[1].y[1] = 6;
        hdr.h.c = pairs[0].x + (bit<8>) pairs[0].y[1] + (bit<8>) pairs[1].y[1] + (bit<8>) v.size;
        if (v == m.kept) { hdr.h.c = 0xff; }
        set({ 7, 9 });
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

V1Switch(P(), C(), I(), E(), C(), D()) main;
