#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }
enum bit<8> S { one = 1, two = 2 }
type bit<8> N;
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        S s = (S) hdr.h.a;
        N n = (N) hdr.h.b;
        bool flag = (bool) hdr.h.a[0:0];
        hdr.h.c[15:8] = s == S.two ? 8w0x22 : 0x11;
        hdr.h.c[7:0] = (bit<8>) n;
        hdr.h.d = (bit<32>) (int<32>) (int<8>) hdr.h.b;
        hdr.h.a = 4w5 ++ (bit<3>) 6 ++ (bit<1>) flag;
        hdr.h.b[6:5] = 2w3;
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
