#include <core.p4>
#include <v1model.p4>

enum bit<8> Kind { low = 1, high = 200 }
header h_t { Kind kind; bit<8> a; bit<8> seen; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.kind, hdr.h.a) {
            (1 .. 9, _): small;
            (_, 9 .. 1): never;
            (Kind.high .. Kind.high, _): high;
            default: accept;
        }
    }
    state small { hdr.h.seen = 1; transition accept; }
    state never { hdr.h.seen = 2; transition accept; }
    state high { hdr.h.seen = 3; transition accept; }
}

// The size of a table can be a constructor's parameter, and bodies can have annotations.
control Sized(inout H hdr)(bit<32> size = 1) {
    action set(bit<8> v) @said { hdr.h.a = v; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { set; NoAction; }
        size = size + 1;
    }
    apply @said { t.apply(); }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    Sized() two;
    Sized(3) four;
    apply {
        sm.egress_spec = 1;
        two.apply(hdr);
        four.apply(hdr);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

.V1Switch(.P(), .C(), I(), E(), C(), D()) main;
