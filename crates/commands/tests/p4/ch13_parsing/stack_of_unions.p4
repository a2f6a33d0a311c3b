// `next` and `last` of a stack of unions: extracting a member of `next` moves on, past the end is an error.
#include <core.p4>
#include <v1model.p4>

header kind_t { bit<8> kind; }
header short_t { bit<8> x; }
header long_t { bit<16> x; }
header_union Item { short_t s; long_t l; }
struct H { kind_t k; Item[2] items; kind_t end; }
struct M { bit<16> sum; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.k);
        transition select(hdr.k.kind) { 1: short; 2: long; default: tail; }
    }
    state short {
        p.extract(hdr.items.next.s);
        m.sum = m.sum + (bit<16>)hdr.items.last.s.x;
        p.extract(hdr.k);
        transition select(hdr.k.kind) { 1: short; 2: long; default: tail; }
    }
    state long {
        p.extract(hdr.items.next.l);
        m.sum = m.sum + hdr.items.last.l.x;
        p.extract(hdr.k);
        transition select(hdr.k.kind) { 1: short; 2: long; default: tail; }
    }
    state tail { p.extract(hdr.end); transition accept; }
}

control V(inout H hdr, inout M m) { apply { } }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error == error.StackOutOfBounds) { sm.egress_spec = 2; }
        hdr.end.setValid();
        hdr.end.kind = m.sum[7:0];
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.items); p.emit(hdr.end); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
