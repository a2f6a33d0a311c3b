// Chapter 11: constants of every kind, initialisation in order, scopes, instances.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}
struct point_t { bit<8> x; bit<8> y; }
const int COUNT_BITS = 4 * 8;
const bit<16> BASE = 0x100;
const bit<16> NEXT = BASE + (bit<16>) COUNT_BITS;
const point_t ORIGIN = { x = 1, y = 2 };
const tuple<bit<8>, bool> T = { 3, true };
const bool CHOICE = BASE > 0xff && T[1];
const bit<8> CHOSEN = CHOICE ? ORIGIN.y : ORIGIN.x;

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    const bit<8> LOCAL = CHOSEN << 2;
    bit<8> first = 5;
    bit<8> after = first * 2;
    counter(LOCAL |+| 8w250 == 255 ? 32w4 : 32w8, CounterType.packets) c;
    apply {
        sm.egress_spec = 1;
        const bit<8> INNER = LOCAL + 1;
        c.count(3);
        {
            bit<8> first = 0x40;                    // hides the other one, here only
            hdr.h.a = first + INNER;
            first = 9;
        }
        hdr.h.b = after + first;
        hdr.h.c = NEXT;
        bit<32> unset = 0;
        for (bit<8> i in 0 .. CHOSEN) {
            bit<32> each = 1;                       // initialised in every turn
            each = each + (bit<32>) i;
            unset = unset + each;
        }
        hdr.h.d = unset;
        first = 0;                                  // initialised again for the next packet
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
