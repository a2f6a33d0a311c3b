// Source routing: the sender puts a stack of ports before the payload; each switch takes the top one off and leaves
// by that port.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

// One hop: the last has `bottom` set.
header hop_t {
    bit<1>  bottom;
    bit<15> port;
}

struct headers_t {
    ethernet_t ethernet;
    hop_t[8]   hops;
}

struct metadata_t {
}

const bit<16> ETHERTYPE_SOURCE_ROUTE = 0x1234;
const bit<16> ETHERTYPE_PAYLOAD = 0x0800;

parser SourceParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_SOURCE_ROUTE: hops;
            default: accept;
        }
    }

    state hops {
        packet.extract(hdr.hops.next);
        transition select(hdr.hops.last.bottom) {
            1: accept;
            default: hops;
        }
    }
}

control SourceVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SourceIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        // More than eight hops, or a stack without a bottom, is a parser error.
        if (standard_metadata.parser_error != error.NoError || !hdr.hops[0].isValid()) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = (bit<9>) hdr.hops[0].port;
            if (hdr.hops[0].bottom == 1) {
                hdr.ethernet.ether_type = ETHERTYPE_PAYLOAD;
            }
            hdr.hops.pop_front(1);
        }
    }
}

control SourceEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control SourceCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SourceDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.hops);
    }
}

V1Switch(SourceParser(), SourceVerify(), SourceIngress(), SourceEgress(), SourceCompute(), SourceDeparser()) main;
