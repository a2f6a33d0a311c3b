// A switch that tells all flows of a link one rate, in the band: an IPv4 option of data packets and SYNs has the least of the path.
// The rate is a register that a controller writes. See rcp.py.

#include <core.p4>
#include <v1model.p4>
#include "../../../p4/headers.p4"
#include "../../../p4/forward.p4"

#define PORTS 512

// Bytes of the option: type, length, and the rate in two.
const bit<16> OPTION = 0x5e04;

header option_t {
    bit<16> start;
    // kbit/s of frames as in number.p4; a larger rate is a larger number.
    bit<16> rate;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    option_t   option;
}

struct metadata_t { }

parser RcpParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            6 .. 15: options;
            default: accept;
        }
    }

    // The option counts where it is the first.
    state options {
        transition select(packet.lookahead<bit<16>>()) {
            OPTION: option;
            default: accept;
        }
    }

    state option {
        packet.extract(hdr.option);
        transition accept;
    }
}

control RcpVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RcpIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    // By port: what its flows are told (0: nothing), and the bytes of frames that have come for it.
    register<bit<16>>(PORTS) rate;
    register<bit<32>>(PORTS) arrived;

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
        if (goes) {
            bit<32> port = (bit<32>) standard_metadata.egress_spec;
            bit<32> bytes;
            bit<16> told;
            arrived.read(bytes, port);
            arrived.write(port, bytes + standard_metadata.packet_length);
            rate.read(told, port);
            if (hdr.option.isValid() && told != 0 && told < hdr.option.rate) {
                // RFC 1624, equation 3.
                bit<32> sum = (bit<32>) ~hdr.ipv4.checksum + (bit<32>) ~hdr.option.rate + (bit<32>) told;
                sum = (sum & 0xffff) + (sum >> 16);
                sum = (sum & 0xffff) + (sum >> 16);
                hdr.ipv4.checksum = ~sum[15:0];
                hdr.option.rate = told;
            }
        }
    }
}

control RcpEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control RcpCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RcpDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(RcpParser(), RcpVerify(), RcpIngress(), RcpEgress(), RcpCompute(), RcpDeparser()) main;
