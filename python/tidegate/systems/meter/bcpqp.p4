// BC-PQP, burst-controlled policer with phantom queues: a peer that the meter is compared with.
//
// Source: A. Tahir et al., "Efficient Policy-Rich Rate Enforcement with Phantom Queues", SIGCOMM 2024, and the rules of its published
// code. A meter has up to 64 phantom queues; no packet is held. A packet goes to the queue of its flow:
//   1. If the queue has no room for it within Q, the meter drains. If there is still none, the packet is dropped.
//   2. Otherwise its length is added to the queue and to the bytes of the queue's period, and the queue is active.
//      X = rate x T / active queues.
//   3. Burst control. More than 1.5 X in a period: the meter drains, and the queue is filled up to Q with magic bytes, so that the
//      next packets are dropped. A period that ends (T after it began) with less than 0.5 X: the magic bytes are taken out again.
//   4. Draining: a budget of rate x the time since the last one, not capped, is shared equally among the active queues; what a short
//      queue leaves goes to the others. What no queue takes is lost. It waits until the budget is 1500 bytes for each active queue.
//      Queues whose period is over have it ended here too, before the budget is shared. Empty queues are not active any more.
//
// Ours, where the rules are silent: a queue that draining has emptied is active again when magic bytes fill it (it would stay full).
// Rounding: shares are rounded down to 1/65536 byte, so that a drain takes at most 64 of 65536 parts of a byte less than its budget.
// The published code has numbers of floating point. X is compared by products; nothing is rounded there.
//
// A queue is that of `flows4` or `flows6` of `places` (exact, from the control plane), or of a hash of the flow over `queues`.
//
// There is a loop over the queues, and one over rounds of sharing: no program for a switch pipeline. It divides by the number of
// active queues, which is known at run time only. Levels are in 1/65536 byte, rates in 1/65536 byte a microsecond.

#include "common.p4"

// 64 queues each.
const bit<32> PHANTOM_METERS = 1024;
const bit<32> PHANTOM_QUEUES = 65536;
// T, in microseconds.
const level_t PERIOD = 200000;
const level_t LARGEST_PACKET = 1500 << 16;

// How many queues are active.
level_t ones(in bit<64> mask) {
    level_t count = 0;
    for (bit<8> queue in 0 .. 63) {
        count = count + ((mask >> queue) & 1);
    }
    return count;
}

struct metadata_t {
    meter_t  meter;
    bit<6>   queue;
    // Q, and over how many queues flows are hashed.
    level_t  size;
    bit<32>  queues;
}

parser PhantomParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    HeadersParser() headers;

    state start {
        headers.apply(packet, hdr);
        transition accept;
    }
}

control PhantomVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Step 4. `meter` is the meter's number, `first` its first queue.
control Drain(register<level_t> length, register<level_t> magic, register<level_t> accepted, register<bit<48>> begun,
              register<bit<64>> actives, register<bit<48>> drained, in bit<32> meter, in bit<32> first, in bit<48> now,
              in bit<32> per_us) {
    apply {
        bit<48> then;
        drained.read(then, meter);
        bit<48> elapsed = now - then;
        // Longer than half an hour is as good as half an hour, and no product below overflows.
        elapsed = elapsed > 0x7fffffff ? 48w0x7fffffff : elapsed;
        level_t budget = (level_t) elapsed * (level_t) per_us;
        bit<64> active;
        actives.read(active, meter);
        level_t count = ones(active);
        if (budget >= count * LARGEST_PACKET) {
            drained.write(meter, now);
            level_t period_bytes = (level_t) per_us * PERIOD;
            level_t level;
            for (bit<32> queue in 0 .. 63) {
                bit<48> began = now;
                if ((active >> (bit<8>) queue) & 1 == 1) {
                    begun.read(began, first + queue);
                }
                if ((level_t) (now - began) >= PERIOD) {
                    level_t bytes;
                    accepted.read(bytes, first + queue);
                    if (2 * bytes * count < period_bytes) {
                        level_t filled;
                        magic.read(filled, first + queue);
                        length.read(level, first + queue);
                        length.write(first + queue, level |-| filled);
                        magic.write(first + queue, 0);
                    }
                    accepted.write(first + queue, 0);
                    begun.write(first + queue, now);
                }
            }
            // A round empties a queue, or is the last.
            for (bit<32> round in 0 .. 63) {
                if (count == 0) {
                    break;
                }
                level_t share = budget / count;
                level_t emptied = 0;
                for (bit<32> queue in 0 .. 63) {
                    if ((active >> (bit<8>) queue) & 1 == 1) {
                        length.read(level, first + queue);
                        level_t taken = level < share ? level : share;
                        length.write(first + queue, level - taken);
                        budget = budget - taken;
                        if (level == taken) {
                            active = active & ~(64w1 << (bit<8>) queue);
                            emptied = emptied + 1;
                        }
                    }
                }
                count = count - emptied;
                if (emptied == 0) {
                    break;
                }
            }
            actives.write(meter, active);
        }
    }
}

control PhantomIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // By queue: what is in it, magic bytes among it, bytes accepted in the period, when that began.
    register<level_t>(PHANTOM_QUEUES) length;
    register<level_t>(PHANTOM_QUEUES) magic;
    register<level_t>(PHANTOM_QUEUES) accepted;
    register<bit<48>>(PHANTOM_QUEUES) begun;
    // By meter: a bit for each active queue, the time of the last draining, the rate.
    register<bit<64>>(PHANTOM_METERS) actives;
    register<bit<48>>(PHANTOM_METERS) drained;
    register<bit<32>>(PHANTOM_METERS) rate;

    counter(PHANTOM_METERS, CounterType.packets_and_bytes) passed;
    counter(PHANTOM_METERS, CounterType.packets_and_bytes) dropped;

    Forward() forwarding;
    Classify() classification;
    Drain() drain_full;
    Drain() drain_burst;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action pass() { }

    action configure(level_t size, bit<32> queues) {
        meta.size = size;
        meta.queues = queues;
    }

    // A meter without an entry lets everything pass.
    table meters {
        key = { meta.meter : exact; }
        actions = { configure; @defaultonly pass; }
        default_action = pass();
        size = 1024;
    }

    action at(bit<6> queue) {
        meta.queue = queue;
    }

    action hash4() {
        hash(meta.queue, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, meta.queues);
    }

    action hash6() {
        hash(meta.queue, HashAlgorithm.crc32, 32w0,
             { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, hdr.ports.src, hdr.ports.dst }, meta.queues);
    }

    table places4 {
        key = {
            hdr.ipv4.src : exact;
            hdr.ipv4.dst : exact;
            hdr.ipv4.protocol : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { at; @defaultonly hash4; }
        default_action = hash4();
        size = 65536;
    }

    table places6 {
        key = {
            hdr.ipv6.src : exact;
            hdr.ipv6.dst : exact;
            hdr.ipv6.next_header : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { at; @defaultonly hash6; }
        default_action = hash6();
        size = 65536;
    }

    apply {
        bool goes;
        bool metered;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
        if (!goes) {
            // What goes nowhere takes no room.
            exit;
        }
        classification.apply(hdr, standard_metadata, meta.meter, metered);
        if (metered && meters.apply().hit) {
            if (hdr.ipv4.isValid()) {
                places4.apply();
            } else if (hdr.ipv6.isValid()) {
                places6.apply();
            }
            bit<32> meter = (bit<32>) meta.meter;
            bit<32> first = meter << 6;
            bit<32> queue = first + (bit<32>) meta.queue;
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<32> per_us;
            rate.read(per_us, meter);
            bit<32> octets = standard_metadata.packet_length - 14;
            if (hdr.vlan.isValid()) {
                octets = octets - 4;
            }
            level_t cost = (level_t) octets << 16;
            level_t level;
            length.read(level, queue);
            if (level + cost > meta.size) {
                drain_full.apply(length, magic, accepted, begun, actives, drained, meter, first, now, per_us);
                length.read(level, queue);
            }
            if (level + cost > meta.size) {
                dropped.count(meter);
                drop();
            } else {
                passed.count(meter);
                level = level + cost;
                length.write(queue, level);
                level_t bytes;
                accepted.read(bytes, queue);
                bytes = bytes + cost;
                accepted.write(queue, bytes);
                bit<64> mine = 64w1 << (bit<8>) meta.queue;
                bit<64> active;
                actives.read(active, meter);
                active = active | mine;
                actives.write(meter, active);
                level_t count = ones(active);
                level_t period_bytes = (level_t) per_us * PERIOD;
                bit<48> began;
                begun.read(began, queue);
                level_t filled;
                bool ends = (level_t) (now - began) >= PERIOD;
                if (2 * bytes * count > 3 * period_bytes) {
                    drain_burst.apply(length, magic, accepted, begun, actives, drained, meter, first, now, per_us);
                    length.read(level, queue);
                    magic.read(filled, queue);
                    magic.write(queue, filled + (meta.size - level));
                    length.write(queue, meta.size);
                    actives.read(active, meter);
                    actives.write(meter, active | mine);
                    ends = true;
                } else if (ends && 2 * bytes * count < period_bytes) {
                    magic.read(filled, queue);
                    magic.write(queue, 0);
                    length.write(queue, level |-| filled);
                }
                if (ends) {
                    accepted.write(queue, 0);
                    begun.write(queue, now);
                }
            }
        }
    }
}

control PhantomEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control PhantomCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PhantomDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(PhantomParser(), PhantomVerify(), PhantomIngress(), PhantomEgress(), PhantomCompute(), PhantomDeparser()) main;
