// A fair TCP meter: holds a customer to a rate in IP bytes, divides it among the customer's flows, and tells each flow when to slow down.
//
// Nothing is held back: its queues are phantom queues. Each is kept as the time at which it will be empty, as in GCRA (ITU-T I.371), so a
// level is a time, and only the time of a byte depends on the rate.
//
//   - `total`, one a meter, drains at the rate. It alone decides how much passes: in any time T at most rate * (T + limit).
//   - `peak`, one a meter, drains at 1.5 times the rate. It bounds a single burst.
//   - `own`, one a flow, drains at the flow's share: the rate over the number of flows that have a queue; more while the total is short
//     and shorter than `own`, less while the total is long (`pressures`). It decides whose packets are marked or dropped.
//
// A flow is told to slow down at most once a round trip: when its queue will reach `target` within a few round trips if it goes on
// growing as in the last one. Then all ECT packets of a round trip are marked, or one packet that is not ECT is dropped. A flow whose
// queue is above `most` is dropped. The round trip is the time from a SYN to the next packet of the same direction.
//
// Where two packets in a round trip are more than a flow's share, TCP can slow down by a timeout alone. Such a flow is stalled at `most`:
// it is dropped until its queue has fallen by 150 ms or is empty, so that it loses one window, not a part of each. What it sends first after
// a timeout is not dropped to tell it something.
//
// Times are us or, of 64 bits, 1/65536 us. Flows of a meter share a queue when the hashes of their addresses and ports are equal.
//
// Not seen: ports behind IP options or IPv6 extension headers and in later fragments (such packets share a queue by their addresses), IP in
// other protocols, IP behind two VLAN tags (passes unmetered).

#include "common.p4"
#include "../../p4/ecn.p4"

// Queues of flows. The controller gives each meter a range of its own, so no customer's flows can meet another's.
const bit<32> QUEUES = 1048576;

// 1/65536 us.
typedef bit<64> ticks_t;
typedef bit<32> us_t;

// What a flow is at in its windows of a round trip.
const bit<3> WATCHING = 0;
// So many windows without a decision, as the sender's answer is on its way.
const bit<3> COOLING_1 = 1;
const bit<3> COOLING_3 = 3;
// Packets are marked, or one is to be dropped; and it has been.
const bit<3> TELLING = 4;
const bit<3> TOLD = 5;
// Everything is dropped until the queue has fallen.
const bit<3> STALLED = 6;

// Where no SYN was seen.
const us_t UNKNOWN_RTT = 100000;
const us_t LEAST_RTT = 50;
const us_t MOST_RTT = 400000;
// From here on an answer takes several windows: recovery spreads it over a round trip more.
const us_t LONG_RTT = 24000;
// A flow that has been silent for this long begins anew.
const us_t PAUSE = 786432;
// 2^20 us: a meter that has been empty for this long begins anew.
const ticks_t IDLE = 64w1 << 36;
// Linux sends again 200 ms after its last packet. A stalled flow's queue falls by so much; and a packet that comes so long after a window
// was over is the first one after a timeout.
const us_t TIMEOUT = 150000;
const ticks_t STALL = (ticks_t) TIMEOUT << 16;

struct metadata_t {
    meter_t  meter;
    bit<2>   ecn;
    // The meter's configuration: 2^-32 us of a byte, and levels.
    bit<48>  per_byte;
    ticks_t  limit;
    ticks_t  peak_limit;
    ticks_t  begin;
    ticks_t  begin_own;
    ticks_t  target;
    ticks_t  middle;
    ticks_t  most;
    bit<6>   fill_shift;
    // Its queues of flows: the first, and their number less 1 (a power of two less 1).
    bit<32>  first;
    bit<32>  mask;
    // The total's level in sixteenths of the limit, and by it what a packet costs its flow: its time, times a factor / 2^shift.
    bit<5>   fill;
    bit<8>   factor;
    bit<3>   shift;
    bool     marks;
    bool     drops;
}

parser FairParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    HeadersParser() headers;

    state start {
        headers.apply(packet, hdr);
        transition select(hdr.ports.isValid(), hdr.ipv4.isValid(), hdr.ipv4.protocol, hdr.ipv6.next_header) {
            (true, true, PROTOCOL_TCP, _): tcp;
            (true, false, _, PROTOCOL_TCP): tcp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control FairVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FairIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Of a meter: when its queues will be empty.
    register<ticks_t>(METERS) total;
    register<ticks_t>(METERS) peak;
    // Flows with a queue: number of the time slot, those counted ahead for the next slot, those of this slot, those of the slot before.
    register<bit<64>>(METERS) flows;
    // What is asked of the meter, in bit/s. The controller keeps it here, to find it again after a restart.
    register<bit<64>>(METERS) target;

    // Of a flow: when its queue will be empty.
    register<ticks_t>(QUEUES) finish;
    // Slot in which it was counted last (8 bits), phase (3), whether it is taken for one in slow start (1), whether its SYN was its last
    // packet (1), round trip (19; 0: not known), begin of its window (32). All 0: a flow that never was.
    register<bit<64>>(QUEUES) state;
    // The window's least level, the level that growth counts from, and what has passed in the window, in 1/256 us.
    register<bit<32>>(QUEUES) lowest;
    register<bit<32>>(QUEUES) reference;
    register<bit<32>>(QUEUES) amount;

    counter(METERS, CounterType.packets_and_bytes) passed;
    counter(METERS, CounterType.packets_and_bytes) dropped;
    counter(METERS, CounterType.packets) marked;
    // Of those dropped: to tell a flow that is not ECN-capable.
    counter(METERS, CounterType.packets) told;

    Forward() forwarding;
    Classify() classification;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action pass() { }

    action configure(bit<48> per_byte, ticks_t limit, ticks_t peak_limit, ticks_t begin, ticks_t begin_own, ticks_t target_level,
                     ticks_t middle, ticks_t most, bit<6> fill_shift, bit<32> first, bit<32> mask) {
        meta.per_byte = per_byte;
        meta.limit = limit;
        meta.peak_limit = peak_limit;
        meta.begin = begin;
        meta.begin_own = begin_own;
        meta.target = target_level;
        meta.middle = middle;
        meta.most = most;
        meta.fill_shift = fill_shift;
        meta.first = first;
        meta.mask = mask;
    }

    // A meter without an entry lets everything pass.
    table meters {
        key = { meta.meter : exact; }
        actions = { configure; @defaultonly pass; }
        default_action = pass();
        size = 65536;
    }

    action press(bit<8> factor, bit<3> shift) {
        meta.factor = factor;
        meta.shift = shift;
    }

    // What a flow cannot use of its share goes to the others because the total falls; new flows are counted late, so it rises.
    table pressures {
        key = { meta.fill : exact; }
        actions = { press; }
        const default_action = press(1, 0);
        const entries = {
            0: press(1, 3);
            1: press(1, 3);
            2: press(1, 3);
            3: press(1, 3);
            4: press(1, 2);
            5: press(1, 1);
            6: press(3, 2);
            14: press(9, 3);
            15: press(4, 0);
            16: press(128, 0);
        }
    }

    // RFC 3168: what can be marked is marked, and nothing else.
    action mark4() {
        hdr.ipv4.checksum = checksum_with_ce(hdr.ipv4.checksum, hdr.ipv4.ecn);
        hdr.ipv4.ecn = CE;
    }

    action mark6() {
        hdr.ipv6.ecn = CE;
    }

    // A window of a round trip: when it begins, the least level in it, and what passes in it.
    action begin_window(in us_t now, in us_t level, out us_t begin, out us_t least, out us_t sum) {
        begin = now;
        least = level;
        sum = 0;
    }

    apply {
        bool goes;
        bool metered;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
        if (!goes) {
            // What goes nowhere takes no share.
            exit;
        }
        classification.apply(hdr, standard_metadata, meta.meter, metered);
        if (metered && meters.apply().hit) {
            bit<32> meter = (bit<32>) meta.meter;
            bit<32> ports = 0;
            if (hdr.ports.isValid()) {
                ports = hdr.ports.src ++ hdr.ports.dst;
            }
            bit<32> spread;
            if (hdr.ipv4.isValid()) {
                meta.ecn = hdr.ipv4.ecn;
                hash(spread, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, ports }, 64w0x100000000);
            } else {
                meta.ecn = hdr.ipv6.ecn;
                hash(spread, HashAlgorithm.crc32, 32w0, { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, ports }, 64w0x100000000);
            }
            bit<32> flow = meta.first + (spread & meta.mask);
            bit<32> length = standard_metadata.packet_length - 14;
            if (hdr.vlan.isValid()) {
                length = length - 4;
            }
            // Rounded up, so that the bound holds for any number of packets.
            ticks_t cost = ((bit<64>) length * (bit<64>) meta.per_byte + 0xffff) >> 16;
            bit<48> now_us = standard_metadata.ingress_global_timestamp;
            us_t now_32 = (us_t) now_us;
            ticks_t now = (ticks_t) now_us << 16;

            // The meter's queues.
            ticks_t total_end;
            ticks_t peak_end;
            bit<64> counted;
            total.read(total_end, meter);
            peak.read(peak_end, meter);
            flows.read(counted, meter);
            bool fresh = total_end == 0 || total_end + IDLE < now;
            ticks_t all = fresh ? meta.begin : total_end |-| now;
            ticks_t burst = peak_end |-| now;
            // Below an eighth of the limit nobody is told.
            bool busy = all > meta.limit >> 3;
            meta.fill = (bit<5>) (all >> meta.fill_shift);
            pressures.apply();

            // The flow's queue.
            ticks_t own_end;
            bit<64> packed;
            us_t least;
            us_t before;
            us_t sum;
            finish.read(own_end, flow);
            state.read(packed, flow);
            lowest.read(least, flow);
            reference.read(before, flow);
            amount.read(sum, flow);
            bit<8> slot = packed[63:56];
            bit<3> phase = packed[55:53];
            bool young = packed[52:52] == 1;
            bool opening = packed[51:51] == 1;
            us_t rtt = (us_t) packed[50:32];
            us_t begin = packed[31:0];
            us_t elapsed = now_32 - begin;
            ticks_t own = own_end |-| now;
            if (fresh && own < meta.begin_own) {
                own = meta.begin_own;
            }
            us_t level = (us_t) (own >> 8);

            // How many flows have a queue: the larger number of two slots of 262 ms.
            bit<16> present = (bit<16>) (now_us >> 18);
            bit<16> next = counted[47:32];
            bit<16> here = counted[31:16];
            bit<16> past = counted[15:0];
            if (counted[63:48] != present) {
                bool follows = counted[63:48] + 1 == present;
                past = follows ? here : 0;
                here = follows ? next : 0;
                next = 0;
            }
            bit<8> following = present[7:0] + 1;
            if (own > 0 && slot != present[7:0] && slot != following) {
                slot = present[7:0];
                here = here |+| 1;
            }
            bit<16> count = here > past ? here : past;
            count = count == 0 ? 16w1 : count;
            ticks_t even = cost * (ticks_t) count;
            ticks_t charge = (even * (ticks_t) meta.factor) >> meta.shift;
            // A queue below the total grows as the total does, so that it tells how that grows. Far below a total that is more than half
            // full, as in a meter that begins, it grows by a sixteenth more, so that it tells before the total is full: but not by losses
            // of datagrams, which may be at their rate.
            bool behind = all > meta.limit >> 1 && own + (meta.limit >> 5) < all && (hdr.tcp.isValid() || meta.ecn != NOT_ECT);
            ticks_t floor = own < all ? (behind ? even + (even >> 4) : even) : cost;
            charge = charge < floor ? floor : charge;
            charge = charge > meta.limit ? meta.limit : charge;
            us_t charge_us = (us_t) (charge >> 8);

            // What the flow is told.
            bool syn = hdr.tcp.isValid() && hdr.tcp.syn == 1;
            us_t trip = rtt == 0 ? UNKNOWN_RTT : rtt;
            bool small = charge_us << 1 > trip << 8;
            if (syn || opening || elapsed > PAUSE || packed == 0) {
                // Its windows begin.
                if (syn || !opening) {
                    // Datagrams that are not ECT may be at their rate from the first on: they are not told to end a slow start by a loss.
                    young = hdr.tcp.isValid() || meta.ecn != NOT_ECT;
                    phase = WATCHING;
                }
                rtt = syn ? 0 : rtt;
                if (opening && !syn) {
                    rtt = elapsed < LEAST_RTT ? LEAST_RTT : (elapsed > MOST_RTT ? MOST_RTT : elapsed);
                }
                opening = syn;
                before = level;
                begin_window(now_32, level, begin, least, sum);
            } else if (phase == STALLED) {
                if (own <= meta.most |-| STALL) {
                    phase = WATCHING;
                    before = level;
                    begin_window(now_32, level, begin, least, sum);
                }
            } else {
                bool long = trip > LONG_RTT;
                if (small && meta.ecn == NOT_ECT) {
                    // It cannot follow each loss: fewer.
                    trip = trip < 400 ? trip << 5 : (trip < 3000 ? trip << 4 : trip << 2);
                }
                bool tells = false;
                least = level < least ? level : least;
                // A window's packets may come in one burst: the next burst belongs to the next window.
                if (elapsed >= trip - (trip >> 3)) {
                    us_t reached = long ? least : level;
                    bool rises = reached > before;
                    bool above = (ticks_t) reached > meta.target >> 8;
                    if (phase == TELLING || phase == TOLD) {
                        phase = long ? COOLING_3 : COOLING_1;
                    } else {
                        phase = phase == WATCHING ? WATCHING : phase - 1;
                        // Without an effect it is told again.
                        if (busy && (phase == WATCHING || phase != COOLING_3 && rises && above)) {
                            us_t rise = reached |-| before;
                            ticks_t expected = (ticks_t) reached + ((ticks_t) rise << (long ? 3w2 : 3));
                            tells = rises && expected > meta.target >> 8 && (ticks_t) reached > meta.target >> 10
                                || (ticks_t) reached > meta.middle >> 8 && reached + (trip << 5) > before;
                        }
                    }
                    if (!long) {
                        before = reached;
                    } else if (rises) {
                        before = before + ((reached - before) >> 1);
                    } else {
                        before = before - ((before - reached) >> 1);
                    }
                    begin_window(now_32, level, begin, least, sum);
                }
                sum = sum |+| charge_us;
                if (phase == WATCHING) {
                    // At the end of slow start, and when a window doubles.
                    us_t first = meta.ecn == ECT1 ? (trip << 8) + (trip << 7) : (trip << 8) - (trip << 6);
                    tells = tells || young && sum > first || !young && sum > (trip << 9) + (charge_us << 1) && own > meta.target >> 1;
                }
                // To drop what is sent first after a timeout would double the next timeout, and slow nothing down.
                bool again = small && meta.ecn == NOT_ECT && elapsed > trip + TIMEOUT;
                if (tells && !again) {
                    phase = TELLING;
                    young = false;
                    begin = now_32;
                    sum = 0;
                }
                if (phase == TELLING) {
                    if (meta.ecn == NOT_ECT) {
                        phase = TOLD;
                        meta.drops = true;
                    } else {
                        meta.marks = meta.ecn != CE && now_32 - begin <= (long ? trip - (trip >> 2) : trip);
                    }
                }
                if (small && busy && own + charge > meta.most) {
                    phase = STALLED;
                }
            }

            // It sends again after 200 ms or more, and keeps its share until then: it is counted ahead.
            if (phase == STALLED && slot == present[7:0]) {
                slot = following;
                next = next |+| 1;
            }
            flows.write(meter, present ++ next ++ here ++ past);

            // What passes.
            ticks_t peak_cost = (cost >> 1) + (cost >> 3) + (cost >> 5) + (cost >> 7);
            bool stays = all + cost > meta.limit || burst + peak_cost > meta.peak_limit || phase == STALLED
                || busy && own + charge > meta.most || own + charge > ((meta.limit |-| all) << 4) * (ticks_t) count
                // Who fills the peak has a long queue, and leaves the last of it to the others.
                || own + charge > (meta.peak_limit |-| burst) << 5;
            if (stays || meta.drops) {
                if (!stays) {
                    told.count(meter);
                }
                dropped.count(meter);
                drop();
            } else {
                all = all + cost;
                burst = burst + peak_cost;
                // What is above decides nothing more, and would be held against it when there are fewer flows.
                own = own + charge > meta.most ? meta.most : own + charge;
                if (meta.marks) {
                    if (hdr.ipv4.isValid()) {
                        mark4();
                    } else {
                        mark6();
                    }
                    marked.count(meter);
                }
                passed.count(meter);
            }
            total.write(meter, now + all);
            peak.write(meter, now + burst);
            finish.write(flow, now + own);
            state.write(flow, slot ++ phase ++ (bit<1>) young ++ (bit<1>) opening ++ rtt[18:0] ++ begin);
            lowest.write(flow, least);
            reference.write(flow, before);
            amount.write(flow, sum);
        }
    }
}

control FairEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FairCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FairDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FairParser(), FairVerify(), FairIngress(), FairEgress(), FairCompute(), FairDeparser()) main;
