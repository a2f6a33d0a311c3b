// Congestion signals in an L2 tag, after the compact form of draft-ravi-ippm-csig: a tag behind the MAC addresses with a signal type
// T, a value S of 32 buckets and a locator LM. A switch replaces S and LM where its own value is strictly worse.
//
// T is 0: available bandwidth, 1: available bandwidth as a share of the port's rate, 2: per-hop delay, which here is the time in the
// queue. Of the first two the smallest is kept, of the last the largest. README.md has the layout and what the draft leaves open.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/forward.p4"

// No value is assigned.
#ifndef CSIG_TPID
#define CSIG_TPID 0x9900
#endif

const bit<16> TYPE_CSIG = CSIG_TPID;
const bit<3> LEAST_BANDWIDTH = 0;
const bit<3> LEAST_SHARE = 1;
const bit<3> LONGEST_DELAY = 2;
const bit<64> LAST_BUCKET = 31;

const bit<32> PORTS = 512;

#include "meter.p4"

header csig_t {
    bit<3>  signal;
    bit<1>  reserved;
    bit<5>  value;
    bit<7>  locator;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    csig_t     csig;
}

struct metadata_t {
    // Of the port: log2 of the meter's window in ticks, bytes that the link can send in it (1/256 byte), and what LM says.
    bit<8>  window;
    bit<64> capacity;
    bit<7>  locator;
    bit<32> multiplier;
    bit<8>  shift;
    bit<32> scaled;
    bit<64> bucket;
}

parser CsigParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_CSIG: csig;
            default: accept;
        }
    }

    state csig {
        packet.extract(hdr.csig);
        transition accept;
    }
}

control CsigVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control CsigIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
    }
}

control Csig(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: a tag that ends too early; 1: a second tag behind the first.
    counter(2, CounterType.packets) unstamped;
    Meter() meter;

    action port(bit<8> window, bit<64> capacity, bit<7> locator) {
        meta.window = window;
        meta.capacity = capacity;
        meta.locator = locator;
    }

    action pass() { }

    // A port without an entry does not signal.
    table ports {
        key = { standard_metadata.egress_port : exact; }
        actions = { port; @defaultonly pass; }
        default_action = pass();
        size = 512;
    }

    action scale(bit<32> multiplier, bit<8> shift) {
        meta.multiplier = multiplier;
        meta.shift = shift;
    }

    // A signal without an entry is left alone.
    table signals {
        key = {
            standard_metadata.egress_port : exact;
            hdr.csig.signal : exact;
        }
        actions = { scale; @defaultonly pass; }
        default_action = pass();
        size = 2048;
    }

    action in_bucket(bit<5> bucket) {
        meta.bucket = (bit<64>) bucket;
    }

    // Ranges of scaled values; without any, a scaled value is its bucket.
    table ranges {
        key = {
            hdr.csig.signal : exact;
            meta.scaled : range;
        }
        actions = { in_bucket; @defaultonly pass; }
        default_action = pass();
        size = 128;
    }

    apply {
        if (ports.apply().hit) {
            bit<64> rate;
            bit<48> elapsed;
            meter.apply(standard_metadata, meta.window, rate, elapsed);
            if (hdr.csig.isValid()) {
                if (hdr.csig.type == TYPE_CSIG) {
                    unstamped.count(1);
                } else if (signals.apply().hit) {
                    bit<64> found = meta.capacity |-| rate;
                    if (hdr.csig.signal == LONGEST_DELAY) {
                        found = (bit<64>) standard_metadata.deq_timedelta;
                    }
                    found = found > 0xffff_ffff ? 64w0xffff_ffff : found;
                    meta.bucket = (found * (bit<64>) meta.multiplier) >> meta.shift;
                    meta.scaled = meta.bucket > 0xffff_ffff ? 32w0xffff_ffff : (bit<32>) meta.bucket;
                    ranges.apply();
                    bit<5> bucket = (bit<5>) (meta.bucket > LAST_BUCKET ? LAST_BUCKET : meta.bucket);
                    bool worse = bucket < hdr.csig.value;
                    if (hdr.csig.signal == LONGEST_DELAY) {
                        worse = bucket > hdr.csig.value;
                    }
                    if (worse) {
                        hdr.csig.value = bucket;
                        hdr.csig.locator = meta.locator;
                    }
                }
            } else if (hdr.ethernet.isValid() && hdr.ethernet.type == TYPE_CSIG) {
                unstamped.count(0);
            }
        }
    }
}

control CsigCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control CsigDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(CsigParser(), CsigVerify(), CsigIngress(), Csig(), CsigCompute(), CsigDeparser()) main;
