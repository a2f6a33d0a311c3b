// Chapter 20: annotations, those that name things for the control plane and those that only say something.
#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

@brief("one header") @somebody_elses
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { @my_structured[key = 1, other = "x"] bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control inner(inout H hdr) {
    @name(".short") action set(@name("value") bit<8> v) { hdr.h.b = v; }
    @hidden action mark() { hdr.h.c[0:0] = 1; }
    @name("lookup") table t {
        key = { hdr.h.a : exact @name("first"); hdr.h.d[7:0] : ternary @name("low"); }
        actions = { set; @defaultonly NoAction; @tableonly mark; }
        default_action = NoAction();
    }
    apply { @unlikely_to_matter[] { t.apply(); } }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    @name("in.side") inner() i;
    @unused("for nothing") bit<8> nobody;
    apply {
        sm.egress_spec = 1;
        @atomic { i.apply(hdr); }
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
