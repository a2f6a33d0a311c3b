// An ECMP load balancer: TCP flows to a virtual address are spread over servers by an action selector, so that all
// packets of a flow take the same way (RFC 2992).

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
    bit<8>  dscp_ecn;
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

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t    ethernet;
    ipv4_header_t ipv4;
    ports_t       ports;
}

struct metadata_t {
}

parser BalancerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (5, 6): ports;
            (5, 17): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control BalancerVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BalancerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action server(bit<9> port, bit<48> mac, bit<32> address) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = address;
    }

    action_selector(HashAlgorithm.crc16, 1024, 14) servers;

    table virtual_address {
        key = {
            hdr.ipv4.dst : exact;
            hdr.ipv4.src : selector;
            hdr.ipv4.protocol : selector;
            hdr.ports.src : selector;
            hdr.ports.dst : selector;
        }
        actions = { server; drop; }
        implementation = servers;
        size = 256;
    }

    apply {
        if (hdr.ports.isValid()) {
            if (!virtual_address.apply().hit) {
                drop();
            }
        } else {
            drop();
        }
    }
}

control BalancerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control BalancerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control BalancerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(BalancerParser(), BalancerVerify(), BalancerIngress(), BalancerEgress(), BalancerCompute(), BalancerDeparser()) main;
