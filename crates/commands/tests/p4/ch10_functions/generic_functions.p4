#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }
struct pair_t { bit<8> x; bit<8> y; }

// Sections 8.20, 10: parameters have the types that this call gives them, whatever was called before and in between.
T id<T>(in T x) { return x; }
T second<T>(in T x, in T y) { return y; }
void set<T>(out T x, in T y) { x = y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    pair_t p;
    apply {
        sm.egress_spec = 1;
        // Arguments that are no places have storage of the parameter's type.
        hdr.h.a = id(hdr.h.a + 1);
        hdr.h.c = id(hdr.h.c + 0x100);
        hdr.h.b = second(id(hdr.h.b + 1), second(hdr.h.a + 1, hdr.h.b + 2) + 1);
        // The same function within an argument, for another type.
        hdr.h.d[7:0] = second((bit<8>) second(hdr.h.c + 1, hdr.h.c + 2), hdr.h.b + 1);
        hdr.h.d[31:16] = id(id(hdr.h.c) + 1);
        set<pair_t>(p, { hdr.h.a + 1, 9 });
        hdr.h.d[15:8] = p.x ++ p.y == 16w0x309 ? 8w9 : 0;
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
