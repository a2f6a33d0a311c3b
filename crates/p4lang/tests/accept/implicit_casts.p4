#include <core.p4>
#include <v1model.p4>
// What the reference compiler takes although the specification wants a cast: warnings.
const bit<8> eight = 8;
const int from_literal = 2w3;
const int from_signed = 4s7;
const int from_constant = eight;
const int from_tuple = { 1w1, 1w0 }[0];
const bit<(from_literal + from_signed + from_constant + from_tuple)> wide = 19w0;
type bit<8> Id;
type Id Id2;
const Id none = 0;
const Id2 all = 255;
// Flags without a width.
const bit<8> flags = 1 << 3 | 0x20 & 0x60 ^ 0x41;
const bit<flags> zeros = 0;
const bit<105> same = zeros;
header H_t { Id a; Id2 b; }
struct H { H_t h; }
struct M { Id a; bit<32> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(h.h); m.a = none; transition select(h.h.a) { 3: accept; (Id)4 : accept; _ : reject; } }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t sm) {
    action set(Id x) { h.h.a = x; h.h.b = all; }
    table t { key = { h.h.a : exact; } actions = { set; NoAction; } const entries = { 1 : set(2); } }
    apply { t.apply(); m.a = 7; m.x = m.x << h.h.a >> h.h.b; }
}
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
