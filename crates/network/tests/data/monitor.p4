// Hands every packet to the controller, with the port that it came by in front.

#include <core.p4>
#include <v1model.p4>

header arrival_t {
    bit<16> port;
}

struct headers_t {
    arrival_t arrival;
}

struct metadata_t {
}

parser MonitorParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control MonitorVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MonitorIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.arrival.setValid();
        hdr.arrival.port = (bit<16>) standard_metadata.ingress_port;
        standard_metadata.egress_spec = 64;
    }
}

control MonitorEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MonitorCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MonitorDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.arrival);
    }
}

V1Switch(MonitorParser(), MonitorVerify(), MonitorIngress(), MonitorEgress(), MonitorCompute(), MonitorDeparser()) main;
