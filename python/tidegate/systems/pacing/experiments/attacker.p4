// A host of an attacker: what its controller gives it goes out by its only port. What comes in is dropped.

#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

parser AttackerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control AttackerVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AttackerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.ingress_port == 0) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = 0;
        }
    }
}

control AttackerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control AttackerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AttackerDeparser(packet_out packet, in headers_t hdr) {
    apply { }
}

V1Switch(AttackerParser(), AttackerVerify(), AttackerIngress(), AttackerEgress(), AttackerCompute(), AttackerDeparser()) main;
