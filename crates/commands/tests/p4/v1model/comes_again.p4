#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8>  op;
    bit<16> port;
    bit<8>  instance;
    bit<8>  has_time;
}

struct headers_t {
    op_t op;
}

struct metadata_t {
    @field_list(1) bit<16> came_from;
    bit<16> lost;
}

parser AgainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        transition accept;
    }
}

control AgainVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AgainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.instance_type == 0) {
            meta.came_from = (bit<16>) standard_metadata.ingress_port;
            meta.lost = 7;
            if (hdr.op.op == 1) {
                resubmit_preserving_field_list(1);
            }
        } else {
            hdr.op.port = ((bit<16>) standard_metadata.ingress_port << 8) + (meta.came_from << 4) + meta.lost;
            hdr.op.instance = (bit<8>) standard_metadata.instance_type;
            hdr.op.has_time = standard_metadata.ingress_global_timestamp != 0 ? 8w1 : 0;
        }
    }
}

control AgainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.op.op == 2 && hdr.op.instance == 0) {
            recirculate_preserving_field_list(1);
        }
    }
}

control AgainCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AgainDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.op);
    }
}

V1Switch(AgainParser(), AgainVerify(), AgainIngress(), AgainEgress(), AgainCompute(), AgainDeparser()) main;
