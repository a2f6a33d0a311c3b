// The paper's TCP-friendly meter, and a plain token bucket: holds flows, prefixes or ports to a rate in IP bytes.
//
// Source: S.-Y. Wang, H.-W. Hu, Y.-B. Lin, "Design and Implementation of TCP-Friendly Meters in P4 Switches", IEEE/ACM
// Transactions on Networking 28(4), 2020: the token bucket (Fig. 2), early marking (Fig. 5), the second chance (Fig. 6).
// Ours: refill computed from the arrival time, and an averaged level. Our own meter is `fair.p4`.
//
// A meter has a bucket of tokens; a token lets a byte of IP pass. Tokens come
//   - lazily: rate times the time since the last packet, or
//   - by timer: from packets of the switch's packet generator, which carry the meter's number and how many.
// Without marks and second chance it is a plain bucket, which passes at most rate x T + burst in any time T. With the second chance a
// packet may pay for half of its length, and up to twice as much passes.
//
// Levels are in 1/65536 byte, rates in 1/65536 byte a microsecond. A packet costs all that follows its Ethernet header and VLAN tag.
//
// Not seen: ports behind IP options or IPv6 extension headers and in later fragments (such packets are known by their addresses
// alone), IP in other protocols, IP behind two VLAN tags (passes unmetered).

#include "common.p4"
#include "../../p4/ecn.p4"

struct metadata_t {
    meter_t  meter;
    bit<2>   ecn;
    // The meter's configuration.
    level_t  burst;
    level_t  mark_below;
    bit<17>  mark_probability;
    bit<6>   average_shift;
    bit<1>   marks;
    bit<1>   second_chance;
    bit<1>   averages;
    bit<1>   timer;
}

parser MeterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    HeadersParser() headers;

    state start {
        headers.apply(packet, hdr);
        transition accept;
    }
}

control MeterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MeterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Tokens in the bucket, and a moving average of their level.
    register<level_t>(METERS) level;
    register<level_t>(METERS) average;
    // Microseconds of the last refill.
    register<bit<48>>(METERS) updated;
    // What the controller sets each period: tokens a microsecond.
    register<bit<32>>(METERS) rate;
    // What is asked of the meter. The controller keeps it here, to find it again after a restart.
    register<bit<32>>(METERS) target;

    counter(METERS, CounterType.packets_and_bytes) passed;
    counter(METERS, CounterType.packets_and_bytes) dropped;
    counter(METERS, CounterType.packets) marked;
    counter(METERS, CounterType.packets) spared;

    Forward() forwarding;
    Classify() classification;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action pass() { }

    action configure(level_t burst, level_t mark_below, bit<17> mark_probability, bit<6> average_shift, bit<1> marks, bit<1> second_chance,
                     bit<1> averages, bit<1> timer) {
        meta.burst = burst;
        meta.mark_below = mark_below;
        meta.mark_probability = mark_probability;
        meta.average_shift = average_shift;
        meta.marks = marks;
        meta.second_chance = second_chance;
        meta.averages = averages;
        meta.timer = timer;
    }

    // A meter without an entry lets everything pass.
    table meters {
        key = { meta.meter : exact; }
        actions = { configure; @defaultonly pass; }
        default_action = pass();
        size = 65536;
    }

    // Ports that packets of the generator come from; from others they are no orders.
    table generators {
        key = { standard_metadata.ingress_port : exact; }
        actions = { pass; }
        size = 8;
    }

    // RFC 3168: what can be marked is marked, and nothing else.
    action mark4() {
        hdr.ipv4.checksum = checksum_with_ce(hdr.ipv4.checksum, hdr.ipv4.ecn);
        hdr.ipv4.ecn = CE;
    }

    action mark6() {
        hdr.ipv6.ecn = CE;
    }

    apply {
        bool refill = false;
        if (hdr.refill.isValid()) {
            refill = generators.apply().hit;
        }
        bool metered = true;
        if (refill) {
            meta.meter = hdr.refill.meter;
            drop();
        } else {
            bool goes;
            forwarding.apply(hdr.ethernet, standard_metadata, goes);
            if (!goes) {
                // What goes nowhere takes no tokens.
                exit;
            }
            classification.apply(hdr, standard_metadata, meta.meter, metered);
            if (hdr.ipv4.isValid()) {
                meta.ecn = hdr.ipv4.ecn;
            } else if (hdr.ipv6.isValid()) {
                meta.ecn = hdr.ipv6.ecn;
            }
        }
        if (metered && meters.apply().hit) {
            bit<32> meter = (bit<32>) meta.meter;
            level_t tokens;
            level.read(tokens, meter);
            level_t more = 0;
            if (refill) {
                more = meta.timer == 1 ? (level_t) hdr.refill.tokens << 16 : 0;
            } else if (meta.timer == 0) {
                bit<48> now = standard_metadata.ingress_global_timestamp;
                bit<48> then;
                bit<32> per_us;
                updated.read(then, meter);
                rate.read(per_us, meter);
                updated.write(meter, now);
                bit<48> elapsed = now - then;
                // Longer than half an hour is as good as half an hour, and no sum below overflows.
                elapsed = elapsed > 0x7fffffff ? 48w0x7fffffff : elapsed;
                more = (level_t) elapsed * (level_t) per_us;
            }
            tokens = tokens + more;
            tokens = tokens > meta.burst ? meta.burst : tokens;
            if (refill) {
                level.write(meter, tokens);
                exit;
            }
            // Early marking (Fig. 5).
            bool marks = false;
            if (meta.marks == 1) {
                level_t seen = tokens;
                if (meta.averages == 1) {
                    average.read(seen, meter);
                    if (tokens > seen) {
                        seen = seen + ((tokens - seen) >> meta.average_shift);
                    } else {
                        seen = seen - ((seen - tokens) >> meta.average_shift);
                    }
                    average.write(meter, seen);
                }
                if (meta.ecn == 1 || meta.ecn == 2) {
                    bit<17> drawn;
                    random(drawn, 17w0, 17w65535);
                    marks = seen < meta.mark_below && drawn < meta.mark_probability;
                }
                if (marks) {
                    if (hdr.ipv4.isValid()) {
                        mark4();
                    } else {
                        mark6();
                    }
                    meta.ecn = CE;
                }
            }
            // The bucket (Fig. 2), and the second chance of what is marked (Fig. 6), which takes what is left.
            bit<32> length = standard_metadata.packet_length - 14;
            if (hdr.vlan.isValid()) {
                length = length - 4;
            }
            level_t cost = (level_t) length << 16;
            bool green = tokens >= cost;
            if (green) {
                tokens = tokens - cost;
            } else if (meta.second_chance == 1 && meta.ecn == CE && tokens > (cost >> 1)) {
                green = true;
                tokens = 0;
                spared.count(meter);
            }
            level.write(meter, tokens);
            if (green) {
                passed.count(meter);
                if (marks) {
                    marked.count(meter);
                }
            } else {
                dropped.count(meter);
                drop();
            }
        }
    }
}

control MeterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MeterCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MeterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MeterParser(), MeterVerify(), MeterIngress(), MeterEgress(), MeterCompute(), MeterDeparser()) main;
