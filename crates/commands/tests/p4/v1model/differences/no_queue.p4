#include <core.p4>
#include <v1model.p4>

// What egress knows of the queue where there is none.
header h_t { bit<32> deq_timedelta; bit<32> enq_qdepth; bit<32> deq_qdepth; }
struct H { h_t h; }
struct M {}

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { sm.egress_spec = 1; } }

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { hdr.h = { sm.deq_timedelta, (bit<32>) sm.enq_qdepth, (bit<32>) sm.deq_qdepth }; }
}

control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
