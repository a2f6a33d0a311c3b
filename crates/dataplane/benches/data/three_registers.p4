// Three registers read and written for each packet: a count, a byte count and the time of the last packet, by source.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.ether_type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        p.extract(h.ipv4);
        transition accept;
    }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(1024) packets;
    register<bit<64>>(1024) bytes;
    register<bit<48>>(1024) last;
    apply {
        if (h.ipv4.isValid()) {
            bit<32> index = h.ipv4.src & 1023;
            bit<32> count;
            bit<64> sum;
            bit<48> before;
            packets.read(count, index);
            packets.write(index, count + 1);
            bytes.read(sum, index);
            bytes.write(index, sum + (bit<64>) h.ipv4.total_length);
            last.read(before, index);
            last.write(index, s.ingress_global_timestamp);
            h.ipv4.identification = (bit<16>) (s.ingress_global_timestamp - before);
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
        p.emit(h.ipv4);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
