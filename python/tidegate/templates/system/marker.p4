// Marks ECN-capable packets that have waited in a port's queue for longer than a threshold.
//
// Source: RFC 3168 section 5. The threshold of a port stands in a register, in microseconds; 0: nothing is marked.

#include <core.p4>
#include <v1model.p4>
#include <tidegate/p4/headers.p4>
#include <tidegate/p4/ecn.p4>
#include <tidegate/p4/forward.p4>

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
}

parser MarkerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MarkerVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MarkerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
    }
}

control MarkerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(512) threshold;
    counter(512, CounterType.packets) forwarded;
    counter(512, CounterType.packets) marked;

    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<32> most;
        threshold.read(most, port);
        bool late = most != 0 && standard_metadata.deq_timedelta > most;
        if (late && hdr.ipv4.isValid() && (hdr.ipv4.ecn == ECT0 || hdr.ipv4.ecn == ECT1)) {
            hdr.ipv4.checksum = checksum_with_ce(hdr.ipv4.checksum, hdr.ipv4.ecn);
            hdr.ipv4.ecn = CE;
            marked.count(port);
        }
        forwarded.count(port);
    }
}

control MarkerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MarkerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MarkerParser(), MarkerVerify(), MarkerIngress(), MarkerEgress(), MarkerCompute(), MarkerDeparser()) main;
