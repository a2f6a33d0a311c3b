// What `meter.p4` and `standard.p4` have in common: what is parsed, and which meter packets are for.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/forward.p4"

const bit<32> METERS = 65536;

const bit<16> TYPE_REFILL = 0x0880;

typedef bit<16> meter_t;
// Bytes, in 1/65536.
typedef bit<64> level_t;

// What the packet generator's packets carry.
header refill_t {
    meter_t meter;
    bit<32> tokens;
}

// Of TCP, what follows the ports.
header tcp_t {
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<6>  reserved_ae_cwr_ece;
    bit<3>  flags_urg_ack_psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    ports_t    ports;
    tcp_t      tcp;
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

// Which meter a packet is for: the first table that knows it decides, `pass` too; a packet that none knows is not metered.
control Classify(in headers_t hdr, in standard_metadata_t standard_metadata, out meter_t found, out bool metered) {
    action use(meter_t number) {
        found = number;
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
