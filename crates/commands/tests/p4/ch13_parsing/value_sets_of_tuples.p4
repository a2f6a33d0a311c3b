// Section 13.11: a value set of a tuple in a tuple has a field for each of the keys, a new type's as wide as what it is made from.
#include <core.p4>
#include <v1model.p4>

type bit<8> kind_t;
header h_t { bit<8> a; kind_t b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M {}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<tuple<tuple<bit<8>, bit<8>>, bit<16>>>(2) triples;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b, hdr.h.c) { triples: in_triples; default: accept; }
    }
    state in_triples { hdr.h.d = 1; transition accept; }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
