#define PORT 3
#define ADD(x, y) ((x) + (y))
#define FIELD(n) hdr.h.n
#define PASTE(a, b) a##b
#if defined(PORT) && PORT > 2
#define VALUE 8w0x0_7
#else
#define VALUE 8w99
#endif
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = PORT;
        FIELD(a) = ADD(FIELD(b), VALUE); // one line comment
        hdr.h.PASTE(b, ) = 8w0b1010_0101; /* and
        another */
        hdr.h.c = 0o17 + 0d10 + 0x1F;
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
