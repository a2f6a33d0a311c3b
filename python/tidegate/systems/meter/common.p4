// What `meter.p4` and `standard.p4` have in common: headers, where packets go, and which meter is theirs.

#include <core.p4>
#include <v1model.p4>

const bit<32> METERS = 65536;

const bit<16> TYPE_IPV4   = 0x0800;
const bit<16> TYPE_IPV6   = 0x86dd;
const bit<16> TYPE_VLAN   = 0x8100;
const bit<16> TYPE_REFILL = 0x0880;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

typedef bit<16> meter_t;
// Bytes, in 1/65536.
typedef bit<64> level_t;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<16> tag;
    bit<16> type;
}

header ipv4_t {
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

header ipv6_t {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_length;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

// What the packet generator's packets carry.
header refill_t {
    meter_t meter;
    bit<32> tokens;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    ports_t    ports;
    refill_t   refill;
}

parser HeadersParser(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            TYPE_REFILL: refill;
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
        // Ports are where they are expected only without options, and in the first fragment.
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: ports;
            PROTOCOL_UDP: ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }

    state refill {
        packet.extract(hdr.refill);
        transition accept;
    }
}

// Where a packet goes, and whether it goes anywhere.
control Forward(in headers_t hdr, inout standard_metadata_t standard_metadata, out bool goes) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { to_port; flood; drop; }
        default_action = drop();
        size = 65536;
    }

    // Where packets go whose address `forward` does not know: by the port that they come in by. So the switch can be put into a wire.
    table wires {
        key = { standard_metadata.ingress_port : exact; }
        actions = { to_port; @defaultonly drop; }
        default_action = drop();
        size = 512;
    }

    apply {
        goes = true;
        switch (forward.apply().action_run) {
            drop: {
                goes = wires.apply().hit;
            }
            default: { }
        }
    }
}

// Which meter a packet is for: the first table that knows it decides, `pass` too; a packet that none knows is not metered.
control Classify(in headers_t hdr, in standard_metadata_t standard_metadata, out meter_t found, out bool metered) {
    action use(meter_t meter) {
        found = meter;
        metered = true;
    }

    action pass() { }

    table flows4 {
        key = {
            hdr.ipv4.src : exact;
            hdr.ipv4.dst : exact;
            hdr.ipv4.protocol : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table flows6 {
        key = {
            hdr.ipv6.src : exact;
            hdr.ipv6.dst : exact;
            hdr.ipv6.next_header : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table sources4 {
        key = { hdr.ipv4.src : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table sources6 {
        key = { hdr.ipv6.src : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table targets4 {
        key = { hdr.ipv4.dst : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table targets6 {
        key = { hdr.ipv6.dst : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { use; pass; }
        default_action = pass();
        size = 512;
    }

    apply {
        found = 0;
        metered = false;
        // What is not IP is not metered.
        bool known = true;
        if (hdr.ipv4.isValid()) {
            known = false;
            if (hdr.ports.isValid()) {
                known = flows4.apply().hit;
            }
            if (!known) {
                known = sources4.apply().hit;
            }
            if (!known) {
                known = targets4.apply().hit;
            }
        } else if (hdr.ipv6.isValid()) {
            known = false;
            if (hdr.ports.isValid()) {
                known = flows6.apply().hit;
            }
            if (!known) {
                known = sources6.apply().hit;
            }
            if (!known) {
                known = targets6.apply().hit;
            }
        }
        if (!known) {
            ports.apply();
        }
    }
}
