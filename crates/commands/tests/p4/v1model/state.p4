#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    register<bit<16>>(4) r;
    register<int<8>>(2) s;
    counter(4, CounterType.packets_and_bytes) c;
    direct_counter(CounterType.packets) dc;
    meter(2, MeterType.packets) mt;
    action hit() { dc.count(); }
    table t { key = { hdr.h.a : exact; } actions = { hit; NoAction; } counters = dc; }
    apply {
        sm.egress_spec = 1;
        bit<16> v;
        r.read(v, (bit<32>) hdr.h.a);
        v = v + 1;
        r.write((bit<32>) hdr.h.a, v);
        hdr.h.c = v;
        c.count((bit<32>) hdr.h.a);
        t.apply();
        bit<32> color;
        mt.execute_meter((bit<32>) hdr.h.a, color);
        hdr.h.d = color;
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

V1Switch(P(), V(), I(), E(), C(), D()) main;
