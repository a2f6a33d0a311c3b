// Deep parsing: a VLAN tag, IPv6 with extension headers, VXLAN (RFC 7348), and the inner Ethernet, IPv4 and UDP headers, whose TTL is
// decremented.

#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> kind; }
header ipv6_t {
    bit<4> version; bit<8> traffic_class; bit<20> flow_label; bit<16> length; bit<8> next; bit<8> hop_limit;
    bit<128> src; bit<128> dst;
}
// Extension headers of eight bytes.
header extension_t { bit<8> next; bit<8> length; bit<48> options; }
header udp_t { bit<16> src; bit<16> dst; bit<16> length; bit<16> checksum; }
header vxlan_t { bit<8> flags; bit<24> reserved; bit<24> vni; bit<8> reserved2; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_length; bit<16> identification; bit<3> flags;
    bit<13> offset; bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}

struct headers_t {
    ethernet_t     ethernet;
    vlan_t         vlan;
    ipv6_t         ipv6;
    extension_t[4] extensions;
    udp_t          udp;
    vxlan_t        vxlan;
    ethernet_t     inner_ethernet;
    ipv4_t         inner_ipv4;
    udp_t          inner_udp;
}

struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.kind) {
            0x8100: vlan;
            0x86dd: ipv6;
            default: accept;
        }
    }
    state vlan {
        p.extract(h.vlan);
        transition select(h.vlan.kind) {
            0x86dd: ipv6;
            default: accept;
        }
    }
    state ipv6 {
        p.extract(h.ipv6);
        transition select(h.ipv6.next) {
            0: extension;
            43: extension;
            60: extension;
            17: udp;
            default: accept;
        }
    }
    state extension {
        p.extract(h.extensions.next);
        transition select(h.extensions.last.next) {
            0: extension;
            43: extension;
            60: extension;
            17: udp;
            default: accept;
        }
    }
    state udp {
        p.extract(h.udp);
        transition select(h.udp.dst) {
            4789: vxlan;
            default: accept;
        }
    }
    state vxlan {
        p.extract(h.vxlan);
        p.extract(h.inner_ethernet);
        transition select(h.inner_ethernet.kind) {
            0x0800: inner_ipv4;
            default: accept;
        }
    }
    state inner_ipv4 {
        p.extract(h.inner_ipv4);
        transition select(h.inner_ipv4.protocol) {
            17: inner_udp;
            default: accept;
        }
    }
    state inner_udp {
        p.extract(h.inner_udp);
        transition accept;
    }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.inner_udp.isValid() && h.inner_ipv4.ttl > 1) {
            h.inner_ipv4.ttl = h.inner_ipv4.ttl - 1;
            s.egress_spec = 1;
        } else {
            mark_to_drop(s);
        }
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }

control D(packet_out p, in headers_t h) {
    apply {
        p.emit(h.ethernet);
        p.emit(h.vlan);
        p.emit(h.ipv6);
        p.emit(h.extensions);
        p.emit(h.udp);
        p.emit(h.vxlan);
        p.emit(h.inner_ethernet);
        p.emit(h.inner_ipv4);
        p.emit(h.inner_udp);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
