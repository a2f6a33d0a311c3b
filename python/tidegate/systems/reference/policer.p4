// A token-bucket policer in registers: each port may have a rate at which packets that come in there are let through; what
// finds too few tokens is dropped. The bucket is filled lazily, when a packet comes. Lengths count the Ethernet header.

#include <core.p4>
#include <v1model.p4>

struct headers_t {
}

struct metadata_t {
}

parser PolicerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control PolicerVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PolicerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // By port of arrival. Tokens are bits, times are microseconds: so a rate is in bits per microsecond, which is Mbit/s.
    register<bit<16>>(512) rate;      // 0: everything passes
    register<bit<32>>(512) burst;
    register<bit<48>>(512) tokens;
    register<bit<48>>(512) filled;    // when the tokens were counted
    counter(512, CounterType.packets_and_bytes) passed;
    counter(512, CounterType.packets_and_bytes) dropped;

    apply {
        bit<32> port = (bit<32>) standard_metadata.ingress_port;
        // A wire between ports 0 and 1, 2 and 3, ...
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
        bit<16> per_us;
        rate.read(per_us, port);
        if (per_us != 0) {
            bit<32> most;
            bit<48> have;
            bit<48> since;
            burst.read(most, port);
            tokens.read(have, port);
            filled.read(since, port);
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<48> elapsed = now - since;
            // After so many microseconds the bucket is full at any rate, and the product below cannot overflow.
            if (elapsed >= (bit<48>) most) {
                have = (bit<48>) most;
            } else {
                have = have + elapsed * (bit<48>) per_us;
                if (have > (bit<48>) most) {
                    have = (bit<48>) most;
                }
            }
            bit<48> length = (bit<48>) (standard_metadata.packet_length << 3);
            if (have >= length) {
                have = have - length;
                passed.count(port);
            } else {
                mark_to_drop(standard_metadata);
                dropped.count(port);
            }
            tokens.write(port, have);
            filled.write(port, now);
        }
    }
}

control PolicerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control PolicerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PolicerDeparser(packet_out packet, in headers_t hdr) {
    apply { }
}

V1Switch(PolicerParser(), PolicerVerify(), PolicerIngress(), PolicerEgress(), PolicerCompute(), PolicerDeparser()) main;
