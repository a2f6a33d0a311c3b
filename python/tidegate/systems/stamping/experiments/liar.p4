// A switch that lies: it sets the stamp of each packet to a number from `low` to `high`, at random. Stamps are IPv4 options of one byte.

#include <core.p4>
#include <v1model.p4>
#include "../../../p4/headers.p4"
#include "../../../p4/forward.p4"

#define FOLD_MAX 0
#define FOLD_VECTOR 3
#define STAMP_FOLD FOLD_MAX
#define STAMP_BYTES 1
#define STAMP_ENTRIES 1
#define CODE_BITS 8
#define VALUE_BYTES 1
#define VALUE_BITS 8

#include "../field.p4"
#include "../option.p4"

control LiarVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LiarIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
    }
}

control Lie(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<8> code = 0;

    action set(bit<8> low, bit<8> high) {
        random(code, low, high);
    }

    action pass() { }

    table lies {
        key = { meta.field : exact; }
        actions = { set; @defaultonly pass; }
        default_action = pass();
        size = 4;
    }

    apply {
        if (lies.apply().hit) {
            bit<8> old = hdr.stamp.value;
            bit<6> hops = hdr.stamp.hops;
            hdr.stamp.value = code;
            // 63 stay 63.
            hdr.stamp.hops = hops == 63 ? hops : hops + 1;
            hdr.ipv4.checksum = checksum_with(hdr.ipv4.checksum, old, code, hops, hdr.stamp.hops, meta.odd);
        }
    }
}

control LiarCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LiarDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(StampParser(), LiarVerify(), LiarIngress(), Lie(), LiarCompute(), LiarDeparser()) main;
