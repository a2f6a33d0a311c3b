// Chapter 9: sizes of types and expressions, known at compile time.
#include <core.p4>
#include <v1model.p4>

header small_t { bit<8> v; }
header wide_t { bit<3> x; bit<13> y; bit<24> z; }
header var_t { bit<8> length; varbit<40> data; }
header_union u_t { small_t s; wide_t w; }
struct mixed_t { bit<3> a; bool b; int<7> c; wide_t w; }
enum bit<9> E_t { x = 1 }
header out_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; bit<8> h; bit<8> i; bit<8> j; }
struct H { out_t o; var_t v; small_t[3] s; u_t u; }
struct M { mixed_t m; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<9> nine = 0;
        hdr.o = {
            hdr.v.minSizeInBits(), hdr.v.maxSizeInBits(),            // 8, 48
            hdr.v.minSizeInBytes(), hdr.v.maxSizeInBytes(),          // 1, 6
            hdr.s.maxSizeInBits(),                                   // 24
            hdr.u.minSizeInBits(), hdr.u.maxSizeInBytes(),           // 40, 5: of the largest member
            m.m.maxSizeInBits(),                                     // 3 + 1 + 7 + 40
            nine.maxSizeInBits(), nine.minSizeInBytes()              // 9, 2
        };
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
