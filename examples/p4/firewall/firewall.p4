// A stateful firewall: TCP connections may be opened from inside (port 1) to outside (port 2), not the other way. A
// Bloom filter of two registers remembers the flows that a SYN from inside has opened.

#include <core.p4>
#include <v1model.p4>

const bit<32> CELLS = 4096;
const bit<9> INSIDE = 1;
const bit<9> OUTSIDE = 2;

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

header tcp_t {
    bit<16> src;
    bit<16> dst;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  data_offset;
    bit<6>  reserved_ecn;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
}

struct headers_t {
    ethernet_t    ethernet;
    ipv4_header_t ipv4;
    tcp_t         tcp;
}

struct metadata_t {
}

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: tcp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control FirewallVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<1>>(CELLS) first_filter;
    register<bit<1>>(CELLS) second_filter;

    // Places of a flow in the two filters, named from the inside: (inside address, outside address, ports).
    action places(in bit<32> inside, in bit<32> outside, in bit<16> inside_port, in bit<16> outside_port,
                  out bit<32> first, out bit<32> second) {
        hash(first, HashAlgorithm.crc16, 32w0, { inside, outside, inside_port, outside_port }, CELLS);
        hash(second, HashAlgorithm.crc32, 32w0, { inside, outside, inside_port, outside_port }, CELLS);
    }

    apply {
        if (!hdr.tcp.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        bit<32> first;
        bit<32> second;
        if (standard_metadata.ingress_port == INSIDE) {
            places(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.src, hdr.tcp.dst, first, second);
            if (hdr.tcp.syn == 1) {
                first_filter.write(first, 1);
                second_filter.write(second, 1);
            }
            standard_metadata.egress_spec = OUTSIDE;
        } else {
            places(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dst, hdr.tcp.src, first, second);
            bit<1> in_first;
            bit<1> in_second;
            first_filter.read(in_first, first);
            second_filter.read(in_second, second);
            if (in_first == 1 && in_second == 1) {
                standard_metadata.egress_spec = INSIDE;
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FirewallCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}

V1Switch(FirewallParser(), FirewallVerify(), FirewallIngress(), FirewallEgress(), FirewallCompute(), FirewallDeparser()) main;
