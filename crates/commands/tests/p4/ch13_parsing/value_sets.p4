// Section 13.11: value sets, of a number and of a structure with match kinds, filled while packets flow.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}
struct pair_t { @match(ternary) bit<8> a; @match(exact) bit<8> b; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<bit<16>>(2) plain;
    value_set<pair_t>(4) pairs;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.c) {
            0xffff: accept;
            plain: in_plain;
            default: next;
        }
    }
    state next { transition select(hdr.h.a, hdr.h.b) { pairs: in_pairs; (_, 9): nine; default: accept; } }
    state in_plain { hdr.h.d = 1; transition next; }
    state in_pairs { hdr.h.d = hdr.h.d + 2; transition accept; }
    state nine { hdr.h.d = 9; transition accept; }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
