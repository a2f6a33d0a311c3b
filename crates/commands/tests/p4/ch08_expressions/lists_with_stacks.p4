// Sections 8.1 and 8.18: a list that is assigned reads lastIndex before the stack beside it is written.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
header e_t { bit<8> a; }
struct H { h_t h; }
struct M {}
struct list_t { e_t[2] s; bit<32> n; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    list_t v;
    e_t[2] w;
    state start {
        p.extract(hdr.h);
        p.extract(v.s.next);
        p.extract(w.next);
        p.extract(w.next);
        v = { w, v.s.lastIndex };
        hdr.h.a = (bit<8>) v.n;
        hdr.h.b = (bit<8>) v.s.lastIndex;
        transition accept;
    }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
