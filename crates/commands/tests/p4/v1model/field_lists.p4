// @field_list by number, constant and member of an enum; what a clone keeps. An annotation's text over several lines.
#include <core.p4>
#include <v1model.p4>

enum bit<8> Kept { ONE = 3, TWO = 4 }
const bit<8> THREE = 5;

header h_t { bit<8> which; bit<8> a; bit<8> b; bit<8> c; }
struct H { h_t h; }
struct M {
    @field_list(Kept.ONE, 6) bit<8> a;
    @field_list(Kept.TWO) bit<8> b;
    @field_list(THREE) bit<8> c;
}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply { } }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    @entry_restriction("
        // What stands here is not P4: it's text.
        #not a directive
        which != 0;
    ")
    table t { key = { hdr.h.which : exact; } actions = { NoAction; } }
    apply {
        sm.egress_spec = 1;
        m.a = 0xa;
        m.b = 0xb;
        m.c = 0xc;
        t.apply();
        switch (hdr.h.which) {
            3: { clone_preserving_field_list(CloneType.I2E, 9, (bit<8>)Kept.ONE); }
            4: { clone_preserving_field_list(CloneType.I2E, 9, Kept.TWO); }
            5: { clone_preserving_field_list(CloneType.I2E, 9, THREE); }
            6: { clone_preserving_field_list(CloneType.I2E, 9, 6); }
            7: { clone_preserving_field_list(CloneType.I2E, 9, 7); }
        }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { hdr.h.a = m.a; hdr.h.b = m.b; hdr.h.c = m.c; }
}

control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
