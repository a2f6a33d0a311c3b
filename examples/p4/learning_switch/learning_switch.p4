// A learning Ethernet switch: known destinations are forwarded, unknown ones flooded, and every new source is
// reported to the control plane in a digest, which then adds it to both tables.

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;

header ethernet_t {
    mac_t    dst;
    mac_t    src;
    bit<16>  ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
}

// What the control plane learns.
struct learn_t {
    mac_t   src;
    bit<9>  port;
}

// Multicast group of all ports.
const bit<16> FLOOD = 1;

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src, standard_metadata.ingress_port });
    }

    table source {
        key = { hdr.ethernet.src : exact; }
        actions = { NoAction; learn; }
        default_action = learn();
        size = 4096;
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD;
    }

    table destination {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; flood; }
        default_action = flood();
        size = 4096;
    }

    apply {
        if (!hdr.ethernet.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        source.apply();
        destination.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        // A flooded frame does not go back to where it came from.
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control SwitchCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), SwitchCompute(), SwitchDeparser()) main;
