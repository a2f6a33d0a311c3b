#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

// Section 6.8: arguments are evaluated from left to right, copied in, and copied out in the order of the parameters.
bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
void swap(inout bit<8> x, inout bit<8> y) { bit<8> t = x; x = y; y = t; }
void both(out bit<8> x, out bit<8> y) { x = 1; y = 2; }
void three(in bit<8> x, inout bit<8> y, in bit<8> z, out bit<16> r) { y = y + 1; r = x ++ z; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        swap(hdr.h.a, hdr.h.b);
        // Both outputs go to one place: the last copy stays.
        both(hdr.h.d[7:0], hdr.h.d[7:0]);
        // The first argument is read before the second changes it, the third after.
        three(hdr.h.a, hdr.h.a, bump(hdr.h.b), hdr.h.c);
        hdr.h.d[31:24] = bump(hdr.h.b) + hdr.h.b;
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
