// Chapter 10: functions; overloading, generics, directions, calls by name, functions that call functions.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}
struct pair_t { bit<8> x; bit<8> y; }

bit<8> larger(in bit<8> a, in bit<8> b) { if (a > b) { return a; } return b; }
bit<8> larger(in bit<8> a, in bit<8> b, in bit<8> c) { return larger(larger(a, b), c); }
T second<T, U>(in U first, in T second) { return second; }
pair_t swapped(in pair_t p) { return { x = p.y, y = p.x }; }
void bump(inout bit<8> v, out bit<8> old, in bit<8> by = 1) { old = v; v = v + by; }
bool nothing(in bit<8> ignored) { return false; }
const bit<8> TEN = 10;
bit<16> both(in bit<8> high, in bit<8> low) { return high ++ low; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<8> old;
        pair_t p = swapped({ hdr.h.a, hdr.h.b });
        bump(p.x, old);
        hdr.h.c = both(low = old, high = larger(p.x, p.y, TEN));
        bump(v = p.y, by = 0x10, old = old);
        hdr.h.d = 24w0 ++ second<bit<8>, bool>(true, p.y);
        hdr.h.d[31:24] = second(hdr.h, old);
        hdr.h.d[8:8] = (bit<1>) nothing(larger(1, 2));
        hdr.h.a = p.x;
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
