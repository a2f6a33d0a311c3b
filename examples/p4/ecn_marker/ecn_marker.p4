// Marks Congestion Experienced on ECN-capable IPv4 packets that found a deep queue (RFC 3168). The threshold is a
// register, so that a control plane can change it while packets flow.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_header_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t    ethernet;
    ipv4_header_t ipv4;
}

struct metadata_t {
}

const bit<2> NOT_ECT = 0;
const bit<2> CE = 3;

parser MarkerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
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
    apply {
        // A wire between ports 0 and 1, 2 and 3, ...
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
    }
}

control MarkerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Packets in the queue from which on a packet is marked.
    register<bit<32>>(1) threshold;
    // Packets marked, by port.
    counter(512, CounterType.packets) marked;

    apply {
        bit<32> limit;
        threshold.read(limit, 0);
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != NOT_ECT && hdr.ipv4.ecn != CE
                && (bit<32>) standard_metadata.enq_qdepth >= limit) {
            hdr.ipv4.ecn = CE;
            marked.count((bit<32>) standard_metadata.egress_port);
        }
    }
}

control MarkerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MarkerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(MarkerParser(), MarkerVerify(), MarkerIngress(), MarkerEgress(), MarkerCompute(), MarkerDeparser()) main;
