#include <core.p4>
#include <v1model.p4>

header i_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
header o_t { bit<8> r; bit<8> s; bit<8> t; bit<8> u; }
header x_t { bit<8> v; }

control Get(register<bit<8>> from, inout bit<8> x) { apply { from.read(x, 0); } }
control Both(register<bit<8>> from, inout bit<8> x) { Get() g; apply { g.apply(from, x); x = x + 1; } }
control Count(counter of, in bit<32> at) { action one() { of.count(at); } apply { one(); } }

struct H { i_t i; o_t o; }
struct M { bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.i); transition accept; }
}

control V(inout H hdr, inout M m) { apply {} }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<8>>(1) ra;
    register<bit<8>>(1) rb;
    counter(4, CounterType.packets) ca;
    counter(4, CounterType.packets) cb;
    Get() get;
    Both() both;
    Count() count;
    apply {
        sm.egress_spec = 1;
        hdr.o = { 0, 0, 0, 0 };
        ra.write(0, 5);
        rb.write(0, 6);
        // One instance, with another object each time: of the caller, and handed on.
        get.apply(ra, hdr.o.r);
        get.apply(rb, hdr.o.s);
        both.apply(rb, hdr.o.t);
        if (hdr.i.a == 1) { both.apply(ra, hdr.o.u); } else { both.apply(rb, hdr.o.u); }
        count.apply(ca, 1);
        count.apply(cb, 2);
        count.apply(cb, 2);
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }

control C(inout H hdr, inout M m) { apply {} }

control D(packet_out p, in H hdr) { apply { p.emit(hdr.o); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
