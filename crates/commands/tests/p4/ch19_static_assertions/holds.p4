// Chapter 19: static_assert, in both forms, with what is known at compile time.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}
const bit<8> LIMIT = 9;
const bool CHECKED = static_assert(LIMIT > 8, "a limit of 8 or less");

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm)(bit<8> size) {
    apply {
        sm.egress_spec = 1;
        static_assert(LIMIT + 1 == 10);
        static_assert(hdr.h.minSizeInBits() == 64, "the header has grown");
        if (CHECKED) { hdr.h.a = LIMIT; }
        hdr.h.b = size;
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(3), E(), C(), D()) main;
