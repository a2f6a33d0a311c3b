// What the programs of this folder have in common around their queues: what is parsed, where a packet goes, what is known of it.
//
// Units: times in microseconds, sizes in bytes of Ethernet frames.
// A queue has a slot: twice its port's number, plus one for the L queue.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/ecn.p4"

const bit<32> PORTS = 512;
const bit<32> SLOTS = 1024;

typedef bit<32> time_t;

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
}

struct metadata_t {
    // The packet goes to a port whose queues are managed, and counts in `backlog`.
    bit<1>  managed;
    // For the L queue.
    bit<1>  low;
    bit<1>  l4s;
    bit<1>  classified;
    bit<2>  ecn;
    bit<6>  dscp;
    // At how many waiting bytes a packet is still taken.
    bit<32> room;
    // From which delay on L packets are marked.
    time_t  step;
}

parser AqmParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.ecn = hdr.ipv4.ecn;
        meta.dscp = hdr.ipv4.dscp;
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.ecn = hdr.ipv6.ecn;
        meta.dscp = hdr.ipv6.dscp;
        transition accept;
    }
}

control AqmVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AqmCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control AqmDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

// Where a packet goes: `sent` to a port, or not.
control Forward(inout headers_t hdr, inout standard_metadata_t standard_metadata, out bool sent) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    // Copies go to queues unmanaged.
    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { to_port; flood; drop; }
        default_action = drop();
        size = 65536;
    }

    apply {
        sent = false;
        switch (forward.apply().action_run) {
            to_port: { sent = true; }
            default: { }
        }
    }
}
