#include <core.p4>
#include <v1model.p4>

enum bit<8> K { one = 1, two = 2 }
header h_t { K a; bit<8> b; bit<8> c; bit<8> d; }
struct H { h_t h; }
struct M { }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a) { K.one: named; K.two: named; default: unnamed; }
    }
    state named { hdr.h.b = 1; transition accept; }
    state unnamed { hdr.h.b = 2; transition accept; }
}

control V(inout H hdr, inout M m) {
    apply { }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(bit<8> v) { hdr.h.d = v; }
    action add(bit<8> v) { hdr.h.d = hdr.h.d + v; }
    table masks { key = { hdr.h.a : ternary; } actions = { set; NoAction; } const entries = { K.one : set(0x10); 0 &&& 0 : set(0x20); } }
    table prefixes { key = { hdr.h.a : lpm; } actions = { add; NoAction; } const entries = { K.one : add(1); 0 &&& 0 : add(2); } }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.a == K.one) { hdr.h.c = 1; } else if (hdr.h.a == K.two) { hdr.h.c = 2; } else { hdr.h.c = 3; }
        switch (hdr.h.a) { K.one: { } K.two: { } default: { hdr.h.c = hdr.h.c + 0x10; } }
        masks.apply();
        prefixes.apply();
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
