// `@priority(n)` of the reference compiler, where the smaller number wins and the others have their position; keys that
// are slices and masks.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<16> b; bit<8> out1; bit<8> out2; }
struct H { h_t h; }
struct M { }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply { } }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action first(bit<8> v) { hdr.h.out1 = v; }
    action second(bit<8> v) { hdr.h.out2 = v; }
    table t {
        key = { hdr.h.a : ternary; }
        actions = { first; NoAction; }
        const entries = {
            0x10 &&& 0xf0 : first(1) @priority(4);
            0x12          : first(2);
            0x02 &&& 0x0f : first(3) @priority(1);
            _             : first(4);
        }
    }
    table u {
        key = { hdr.h.b[15:8] : exact; hdr.h.b & 0x00_0f : exact; }
        actions = { second; NoAction; }
    }
    apply { sm.egress_spec = 1; t.apply(); u.apply(); }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
