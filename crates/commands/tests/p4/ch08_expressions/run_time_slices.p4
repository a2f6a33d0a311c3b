#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> at; bit<16> a; bit<4> b; bit<4> c; int<16> d; bit<8> e; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.b = hdr.h.a[hdr.h.at +: 4];
        hdr.h.c = hdr.h.a[4 +: 4];
        hdr.h.a[hdr.h.at +: 8] = 0x5a;
        hdr.h.e = (bit<8>) hdr.h.d[hdr.h.at +: 4];
        hdr.h.d[hdr.h.at +: 4] += 1;
        tuple<bit<8>, bool> t = { 1, false };
        t[0] = hdr.h.at;
        t[1] = true;
        if (t[1] && t[0] == 20) { hdr.h.c = 0; }
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
