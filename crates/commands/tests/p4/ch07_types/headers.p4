// Section 7.2.2 to 7.2.5 and 8.17, 8.18: validity, equality of headers, stacks in controls, unions, varbit.
#include <core.p4>
#include <v1model.p4>

header one_t { bit<8> v; }
header two_t { bit<16> w; }
header var_t { bit<8> length; varbit<32> data; }
header sum_t { bit<8> bits; bit<8> size; }
header_union either_t { one_t one; two_t two; }
struct H { sum_t sum; one_t[3] s; either_t u; var_t x; var_t y; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { 
        p.extract(hdr.s.next);
        p.extract(hdr.s.next);
        p.extract(hdr.x, (bit<32>) (p.lookahead<bit<8>>() * 8));
        hdr.y = hdr.x;
        transition accept;
     }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.sum.setValid();
        hdr.sum = { 0, (bit<8>) hdr.s.size };
        one_t invalid;
        if (hdr.s[2] == invalid) { hdr.sum.bits[0:0] = 1; }          // both invalid
        if (hdr.s[0] == invalid) { hdr.sum.bits[1:1] = 1; }
        if (hdr.s[0] == { 5 }) { hdr.sum.bits[2:2] = 1; }
        if (hdr.x == hdr.y) { hdr.sum.bits[3:3] = 1; }
        hdr.u.one = { 9 };
        if (hdr.u.one.isValid() && !hdr.u.two.isValid() && hdr.u.isValid()) { hdr.sum.bits[4:4] = 1; }
        hdr.u.two = { 0x0708 };
        if (!hdr.u.one.isValid() && hdr.u.two.isValid()) { hdr.sum.bits[5:5] = 1; }
        hdr.s.pop_front(1);                                          // the second is now the first
        hdr.s.push_front(2);                                         // and now the third
        if (!hdr.s[0].isValid() && !hdr.s[1].isValid() && hdr.s[2].v == 6) { hdr.sum.bits[6:6] = 1; }
        hdr.s[1] = { 0xee };
        hdr.y.length = 0;
        if (hdr.x != hdr.y) { hdr.sum.bits[7:7] = 1; }
        hdr.y.setInvalid();
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
