// Meters of bytes and packets, and direct meters: colours by RFC 2698.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<2> colour; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    meter(4, MeterType.bytes) bytes;
    meter(4, MeterType.packets) packets;
    direct_meter<bit<2>>(MeterType.packets) own;
    action read() { own.read(m.colour); }
    table t { key = { hdr.h.a : exact; } actions = { read; NoAction; } meters = own; }
    apply {
        sm.egress_spec = 1;
        m.colour = 3;
        t.apply();
        hdr.h.b = (bit<8>) m.colour;
        bytes.execute_meter<bit<16>>((bit<32>) hdr.h.a, hdr.h.c);
        packets.execute_meter((bit<32>) hdr.h.a, hdr.h.d);
    }
}

control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
