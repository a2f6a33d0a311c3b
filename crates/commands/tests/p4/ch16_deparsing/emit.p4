#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
header x_t { bit<4> n; bit<12> o; }
struct G { x_t one; x_t two; }
struct H { h_t h; G g; x_t[2] s; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hdr.g.two = { 1, 0x234 };
        hdr.s[1] = { 5, 0x678 };
        if (hdr.h.a == 1) { hdr.h.setInvalid(); }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr.g); p.emit(hdr.h); if (hdr.h.isValid()) { p.emit(hdr.h); } p.emit(hdr.s); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
