#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header g_t { bit<8> x; bit<8> y; }
struct H { h_t h; g_t g; g_t k; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); p.extract(hdr.g); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        tuple<bit<8>, bit<16>> t = { hdr.h.a, 16w7 };
        if (t == { 1, 7 }) { hdr.h.d[7:0] = 1; }
        hdr.h.c = t[1];
        // Swapped: all values are read before the first is written.
        hdr.g = { hdr.g.y, hdr.g.x };
        // Two invalid headers are equal; an invalid and a valid one are not.
        g_t local;
        if (local == hdr.k) { hdr.h.d[15:8] = 1; }
        if (hdr.g == hdr.k) { hdr.h.d[23:16] = 1; }
        hdr.k = hdr.g;
        if (hdr.g == hdr.k) { hdr.h.d[31:24] = 1; }
        hdr.k = {#};
        g_t made = { y = 9, ... };
        hdr.h.b = made.x + made.y;
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

V1Switch(P(), V(), I(), E(), C(), D()) main;
