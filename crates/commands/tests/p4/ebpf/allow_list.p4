// A filter with a table: sources that the control plane lists pass; all IPv4 packets are counted by protocol.
#include <core.p4>
#include <ebpf_model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<8>  version_ihl;
    bit<8>  tos;
    bit<16> length;
    bit<32> id_and_fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

parser prs(packet_in p, out headers_t headers) {
    state start {
        p.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            0x0800: ipv4;
            0x0806: accept;
            default: reject;
        }
    }
    state ipv4 {
        p.extract(headers.ipv4);
        transition accept;
    }
}

control pipe(inout headers_t headers, out bool pass) {
    CounterArray(256, false) by_protocol;

    action allow() {
        pass = true;
    }
    action deny() {
        pass = false;
    }
    // What a filter writes to headers does not reach the packet.
    action allow_with_ttl(bit<8> ttl) {
        headers.ipv4.ttl = ttl;
        pass = true;
    }

    table sources {
        key = { headers.ipv4.src: exact; }
        actions = { allow; allow_with_ttl; deny; }
        default_action = deny();
        implementation = hash_table(64);
    }
    table networks {
        key = { headers.ipv4.src: lpm; }
        actions = { allow; NoAction; }
        default_action = NoAction();
        implementation = array_table(8);
    }

    apply {
        // ARP passes.
        pass = true;
        if (headers.ipv4.isValid()) {
            by_protocol.increment((bit<32>) headers.ipv4.protocol);
            sources.apply();
            networks.apply();
        }
    }
}

ebpfFilter(prs(), pipe()) main;
