// Switch-driven pacing: the switch knows each managed link's flows, and tells their hosts what the link gives to each.
//
// Source: E. Kfoury, J. Crichigno, E. Bou-Harb, D. Khoury, G. Srivastava, "Enabling TCP Pacing using Programmable Data Plane
// Switches", TSP 2019: section III. Formats and rules are in README.md.
//
// A link is managed where its egress port has a capacity. Its members are the flows that send through it and have asked to be
// paced; they are kept by flow, in registers, and in a list for each port. A member leaves with FIN, with RST, or when nothing of
// it has come for `idle`. A walk along a port's list tells its members what has changed, and takes idle ones away; ticks of the
// packet generator drive it.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/forward.p4"

// Members have one of three places, by a hash of their flow: one in each third of the registers.
#define WAY 65536
#define PLACES 196608
#define PORTS 512

// Resubmissions of a tick: members that it visits. The reference switch sets no bound; Tidegate's is 64.
#define STEPS 60
#define NOWHERE 32w196608

const bit<32> RESUBMITTED = 6;
const bit<32> CLONED = 1;

// Counters of what was refused.
const bit<32> NO_PLACE = 0;
const bit<32> NO_ROOM = 1;
const bit<32> BAD_VERSION = 2;
const bit<32> BAD_CHECK = 3;

// How often other traffic is measured, in microseconds, and how often a list is walked when nothing has changed.
const bit<48> MEASURING = 16384;
const bit<48> SCANNING = 1048576;

// A queue that never has fewer packets than this is drained, until it has as few as that.
const bit<32> LONG = 8;
const bit<32> SHORT = 2;

// What a packet is: a step of a walk; sent by a flow through a managed link; a SYN-ACK or a reset for such a flow.
const bit<8> PASSES = 0;
const bit<8> VISIT = 1;
const bit<8> SENT = 2;
const bit<8> ANSWER = 3;

// The source address of notices.
const bit<48> SWITCH_ADDRESS = 0x02_00_00_70_61_63;

// A member's state: it has sent a SYN; the same, with a check; its handshake is done. The last two count: their first bit is 1.
const bit<2> ASKED = 1;
const bit<2> HALF = 3;
const bit<2> JOINED = 2;

struct metadata_t {
    // A walk, from one step to the next.
    @field_list(1) bit<8>  steps;
    @field_list(1) bit<16> port;
    // A notice, from the walk to egress.
    @field_list(2) bit<48> host;
    @field_list(2) bit<32> src;
    @field_list(2) bit<32> dst;
    @field_list(2) bit<16> src_port;
    @field_list(2) bit<16> dst_port;
    @field_list(2) bit<32> epoch;
    @field_list(2) bit<1>  keyed;
    @field_list(2) bit<1>  key_number;
    @field_list(2) bit<64> key;
    @field_list(2) bit<8>  link;
    @field_list(2) bit<16> rate;
    @field_list(2) bit<16> weight;
}

#include "option.p4"
#include "number.p4"
#include "check.p4"

// The fewest packets that a packet has left behind it in a port's queue, plus 1; 0: no packet has left. Egress writes it.
register<bit<32>>(PORTS) backlog;

control PacingVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PacingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    // Of a managed port, by its number. Rates are in kbit/s of frames.
    register<bit<32>>(PORTS) capacity;
    register<bit<8>>(PORTS)  link_id;
    register<bit<32>>(PORTS) flows;
    // Sum of the weights of members that share what the others leave.
    register<bit<32>>(PORTS) weights;
    // Sum of the rates of members that another link, or their application, limits to less.
    register<bit<32>>(PORTS) taken;
    register<bit<32>>(PORTS) others;
    register<bit<32>>(PORTS) other_bytes;
    register<bit<32>>(PORTS) other_average;
    register<bit<48>>(PORTS) measured_at;
    // What is kept back for a while, so that a queue that has built up drains.
    register<bit<32>>(PORTS) draining;
    // Counts changes.
    register<bit<32>>(PORTS) epoch;
    // The managed port whose turn it is after this one.
    register<bit<16>>(PORTS) port_after;
    // Places plus 1; 0: none.
    register<bit<32>>(PORTS) head;
    register<bit<32>>(PORTS) cursor;
    register<bit<1>>(PORTS)  walk_wanted;
    register<bit<48>>(PORTS) walk_at;

    // Of a member, by its place.
    register<bit<64>>(PLACES) member_src;
    register<bit<32>>(PLACES) member_dst;
    // The host's Ethernet address, and the port that leads to it.
    register<bit<64>>(PLACES) member_host;
    // State (2 bits), weight (16) and egress port (9).
    register<bit<32>>(PLACES) member;
    // The rate that it takes at most; 0: what the link gives.
    register<bit<32>>(PLACES) member_limit;
    register<bit<48>>(PLACES) member_seen;
    // The epoch of which it has been told, whether it has said so, and when it was told.
    register<bit<32>>(PLACES) member_told;
    register<bit<1>>(PLACES)  member_knows;
    register<bit<48>>(PLACES) member_told_at;
    // The link that it has left, which its host is to forget; the first bit: it has been told so.
    register<bit<9>>(PLACES)  member_left;
    register<bit<32>>(PLACES) next;
    register<bit<32>>(PLACES) previous;

    // Times in microseconds. Without a packet for so long, a member is gone; one whose handshake is not done, after an eighth of it.
    register<bit<48>>(1) idle;
    // A notice that nobody has seen is sent again after so long.
    register<bit<48>>(1) again;
    // Whose turn is next, and a port that something has changed at, plus 1.
    register<bit<16>>(1) turn;
    register<bit<16>>(1) urgent;
    // Whether options have to have a check, the keys, and the number of that which checks are made with.
    register<bit<1>>(1)  keyed;
    register<bit<64>>(2) keys;
    register<bit<1>>(1)  signing;

    counter(4, CounterType.packets) refused;
    counter(PORTS, CounterType.packets) notices;

    apply {
        bit<48> now = standard_metadata.ingress_global_timestamp;
        bit<8>  what = PASSES;
        // The link that the packet is about, by its port, and the rate that it has: 0, where it is not managed.
        bit<32> port = 0;
        bit<32> rate = 0;
        // The member that the packet is about: its place, what it was, and what it is to be.
        bit<32> place = NOWHERE;
        bit<32> was = 0;
        bit<32> was_limit = 0;
        bit<32> is = 0;
        bit<32> limit = 0;
        bool changes = false;

        // What the packet is.
        if (hdr.tick.isValid()) {
            mark_to_drop(standard_metadata);
            if (standard_metadata.instance_type != RESUBMITTED) {
                bit<16> first;
                meta.steps = 0;
                urgent.read(first, 0);
                urgent.write(0, 0);
                if (first != 0) {
                    meta.port = first - 1;
                } else {
                    turn.read(meta.port, 0);
                    port_after.read(first, (bit<32>) meta.port);
                    turn.write(0, first);
                }
            }
            port = (bit<32>) meta.port;
            capacity.read(rate, port);
            bit<32> at;
            cursor.read(at, port);
            if (standard_metadata.instance_type != RESUBMITTED) {
                bit<48> before;
                measured_at.read(before, port);
                if (now - before >= MEASURING) {
                    // Traffic that does not take part, in kbit/s: what rises by much counts at once, what falls as a moving average.
                    bit<32> bytes;
                    bit<32> average;
                    bit<32> used;
                    measured_at.write(port, now - before >= 2 * MEASURING ? now : before + MEASURING);
                    other_bytes.read(bytes, port);
                    other_bytes.write(port, 0);
                    other_average.read(average, port);
                    bytes = (bit<32>) ((bit<64>) bytes * 8000 >> 14);
                    if (bytes > average + (rate >> 5)) {
                        average = bytes;
                    } else {
                        average = average - (average >> 3) + (bytes >> 3);
                    }
                    other_average.write(port, average);
                    others.read(used, port);
                    bit<32> waiting;
                    bit<32> drains;
                    bit<32> drained;
                    backlog.read(waiting, port);
                    backlog.write(port, 0);
                    draining.read(drained, port);
                    drains = waiting > LONG ? rate >> 6 : waiting <= SHORT ? 0 : drained;
                    if ((average > used ? average - used : used - average) > rate >> 7 || drains != drained) {
                        bit<32> count;
                        others.write(port, average);
                        draining.write(port, drains);
                        epoch.read(count, port);
                        epoch.write(port, count + 1);
                        walk_wanted.write(port, 1);
                    }
                }
                bit<1> wanted;
                walk_wanted.read(wanted, port);
                walk_at.read(before, port);
                if (at == 0 && (wanted == 1 || now >= before)) {
                    walk_at.write(port, now + SCANNING);
                    walk_wanted.write(port, 0);
                    head.read(at, port);
                }
            }
            if (at != 0) {
                bit<32> following;
                what = VISIT;
                place = at - 1;
                next.read(following, place);
                cursor.write(port, following);
                if (following != 0 && meta.steps < STEPS) {
                    meta.steps = meta.steps + 1;
                    resubmit_preserving_field_list(1);
                } else if (following != 0) {
                    urgent.write(0, meta.port + 1);
                }
            }
        } else {
            bool goes;
            forwarding.apply(hdr.ethernet, standard_metadata, goes);
            if (goes) {
                port = (bit<32>) standard_metadata.egress_spec;
                capacity.read(rate, port);
                what = rate != 0 && hdr.tcp.isValid() ? SENT : PASSES;
                bit<8> flags = hdr.tcp.flags & (SYN | ACK | RST);
                if (hdr.tcp.isValid() && (flags == (SYN | ACK) || flags & RST != 0)) {
                    // What answers a flow comes in by the port that the flow goes out by.
                    bit<32> there;
                    capacity.read(there, (bit<32>) standard_metadata.ingress_port);
                    what = there != 0 ? ANSWER : what;
                }
            }
        }

        // Whose it is.
        bit<64> source = hdr.ipv4.src ++ hdr.tcp.src_port ++ hdr.tcp.dst_port;
        bit<32> target = hdr.ipv4.dst;
        bit<32> free = NOWHERE;
        if (what == SENT || what == ANSWER) {
            if (what == ANSWER) {
                source = hdr.ipv4.dst ++ hdr.tcp.dst_port ++ hdr.tcp.src_port;
                target = hdr.ipv4.src;
            }
            bit<32> spread;
            hash(spread, HashAlgorithm.crc32, 32w0, { source, target }, 64w0x1_0000_0000);
            bit<32> at = spread & 0xffff;
            bit<64> there;
            bit<32> there_to;
            member_src.read(there, at);
            member_dst.read(there_to, at);
            if (there == source && there_to == target) {
                place = at;
            } else {
                free = there == 0 ? at : free;
                at = WAY + (spread >> 16);
                member_src.read(there, at);
                member_dst.read(there_to, at);
                if (there == source && there_to == target) {
                    place = at;
                } else {
                    free = there == 0 && free == NOWHERE ? at : free;
                    at = 2 * WAY + ((spread >> 7) * 0x9e37 >> 3 & 0xffff);
                    member_src.read(there, at);
                    member_dst.read(there_to, at);
                    if (there == source && there_to == target) {
                        place = at;
                    }
                    free = there == 0 && free == NOWHERE ? at : free;
                }
            }
        }
        if (place != NOWHERE) {
            member.read(was, place);
            member_limit.read(was_limit, place);
            is = was;
            limit = was_limit;
            if (what == ANSWER) {
                port = (bit<32>) was[8:0];
                capacity.read(rate, port);
            }
        }

        // Whether its option is from who may say it.
        bit<1>  needs_check = 0;
        bit<1>  key_number = 0;
        bit<64> key = 0;
        bool says = hdr.option.isValid() && (what == SENT || what == ANSWER);
        if (what == VISIT || what == ANSWER || says) {
            keyed.read(needs_check, 0);
            signing.read(key_number, 0);
            keys.read(key, (bit<32>) key_number);
        }
        if (says && hdr.option.version != VERSION) {
            refused.count(BAD_VERSION);
            says = false;
        }
        if (says && needs_check == 1) {
            bit<64> other;
            bit<32> bound = what == ANSWER ? hdr.tcp.ack : hdr.option.kind == JOIN ? hdr.tcp.seq : 32w0;
            keys.read(other, (bit<32>) hdr.option.key);
            if (check_of(other, source, target, bound, hdr.option) != hdr.option.check) {
                refused.count(BAD_CHECK);
                says = false;
            }
        }

        // What the link's members share: what it has, less what others take of it.
        bool updates = says && what == SENT && hdr.option.kind == UPDATE;
        bit<32> sum = 0;
        bit<32> share = 0;
        bit<32> count = 0;
        bit<8>  id = 0;
        if (place != NOWHERE && (what != SENT || updates)) {
            bit<32> gone;
            bit<32> more;
            bit<32> drains;
            weights.read(sum, port);
            taken.read(gone, port);
            others.read(more, port);
            epoch.read(count, port);
            link_id.read(id, port);
            draining.read(drains, port);
            gone = gone + more + drains;
            if (what == VISIT && was_limit != 0) {
                // What it could have here, if nothing limited it elsewhere.
                gone = gone - was_limit;
                sum = sum + (bit<32>) was[24:9];
            }
            if (updates) {
                // Without the member itself.
                gone = gone - was_limit;
                sum = was_limit == 0 && was[26:26] == 1 ? sum - (bit<32>) was[24:9] : sum;
            }
            share = rate > gone + (rate >> 5) ? rate - gone : rate >> 5;
        }

        // What becomes of it.
        if (what == VISIT) {
            bit<48> seen;
            bit<48> longest;
            bit<32> told;
            bit<1>  knows;
            bit<48> told_at;
            bit<48> pause;
            member_seen.read(seen, place);
            idle.read(longest, 0);
            member_told.read(told, place);
            member_knows.read(knows, place);
            member_told_at.read(told_at, place);
            bit<9>  left;
            again.read(pause, 0);
            member_left.read(left, place);
            if (left[8:8] == 1 && now - told_at >= pause) {
                left[8:8] = 0;
            }
            longest = was[26:25] == JOINED ? longest : longest >> 3;
            if (now - seen >= longest) {
                is = 0;
                changes = true;
            } else if (was[26:26] == 1 && (left != 0 && left[8:8] == 0 || told != count || knows == 0 && now - told_at >= pause)) {
                bit<64> host;
                bool forgets = left != 0 && left[8:8] == 0;
                member_told_at.write(place, now);
                if (forgets) {
                    member_left.write(place, left | 0x100);
                    walk_wanted.write(port, 1);
                } else {
                    member_told.write(place, count);
                    member_knows.write(place, 0);
                }
                member_src.read(source, place);
                member_dst.read(meta.src, place);
                member_host.read(host, place);
                meta.dst = source[63:32];
                meta.dst_port = source[31:16];
                meta.src_port = source[15:0];
                meta.host = host[63:16];
                meta.epoch = count;
                meta.link = forgets ? left[7:0] : id;
                meta.rate = forgets ? 16w0 : packed(share);
                meta.weight = packed_up(sum == 0 ? 32w1 : sum);
                meta.keyed = needs_check;
                meta.key_number = key_number;
                meta.key = key;
                walk_at.write(port, now + pause);
                notices.count(port);
                // Session p + 1 leads to port p.
                clone_preserving_field_list(CloneType.I2E, (bit<32>) host[8:0] + 1, 2);
            }
        } else if (what == ANSWER && place != NOWHERE) {
            if (hdr.tcp.flags & RST != 0) {
                is = 0;
                changes = true;
            } else {
                sum = sum + (was[26:25] == ASKED ? (bit<32>) was[24:9] : 0);
                sum = sum == 0 ? 32w1 : sum;
                bool writes = true;
                bool inserts = !hdr.option.isValid();
                if (inserts) {
                    writes = hdr.ipv4.ihl <= 15 - OPTION_WORDS;
                    if (!writes) {
                        refused.count(NO_ROOM);
                    }
                } else if (!says || hdr.option.kind != TRACE) {
                    writes = false;
                } else {
                    // The narrowest stays.
                    writes = (bit<64>) share * (bit<64>) number(hdr.option.weight)
                        < (bit<64>) number(hdr.option.rate) * (bit<64>) sum;
                }
                if (writes) {
                    bit<32> words = 0;
                    if (inserts) {
                        hdr.option.setValid();
                        hdr.option.type = OPTION_PACING;
                        hdr.option.length = OPTION_LENGTH;
                        hdr.option.version = VERSION;
                        hdr.option.kind = TRACE;
                        hdr.option.hops = 0;
                        hdr.option.sequence = 0;
                        hdr.ipv4.ihl = hdr.ipv4.ihl + OPTION_WORDS;
                        hdr.ipv4.total_length = hdr.ipv4.total_length + 12;
                        // What the header's first words grow by.
                        words = 0x0300 + 12;
                    } else {
                        words = minus(sum_of(hdr.option));
                    }
                    hdr.option.hops = hdr.option.hops == 7 ? 3w7 : hdr.option.hops + 1;
                    hdr.option.key = key_number;
                    hdr.option.link = id;
                    hdr.option.rate = packed(share);
                    hdr.option.weight = packed_up(sum);
                    hdr.option.check = 0;
                    if (needs_check == 1) {
                        hdr.option.check = check_of(key, source, target, hdr.tcp.ack, hdr.option);
                    }
                    hdr.ipv4.checksum = ~(bit<16>) folded(folded((bit<32>) ~hdr.ipv4.checksum + words + sum_of(hdr.option)));
                }
            }
        } else if (what == SENT && place != NOWHERE) {
            member_seen.write(place, now);
            if (hdr.tcp.flags & (FIN | RST) != 0) {
                is = 0;
                changes = true;
            } else {
                if (was[26:25] != JOINED && hdr.tcp.flags & (SYN | ACK) == ACK) {
                    is[26:25] = JOINED;
                }
                is[8:0] = standard_metadata.egress_spec;
                if (is[8:0] != was[8:0]) {
                    bit<8> old;
                    link_id.read(old, (bit<32>) was[8:0]);
                    member_left.write(place, 1w0 ++ old);
                }
                if (updates) {
                    // It is answered: the host is told again.
                    member_knows.write(place, 0);
                    bit<32> weight = weight_of(hdr.option.weight);
                    is[24:9] = weight[15:0];
                    limit = number(hdr.option.rate);
                    sum = sum + weight;
                    if (hdr.option.link == id || (bit<64>) limit * (bit<64>) sum >= (bit<64>) weight * (bit<64>) share) {
                        limit = 0;
                    }
                }
                if (says && hdr.option.kind == SEEN) {
                    bit<8>  own;
                    bit<32> told;
                    link_id.read(own, port);
                    member_told.read(told, place);
                    if (own == hdr.option.link && told[7:0] == hdr.option.sequence) {
                        member_knows.write(place, 1);
                    }
                    bit<9> left;
                    member_left.read(left, place);
                    if (left[7:0] == hdr.option.link) {
                        member_left.write(place, 0);
                    }
                }
                changes = is != was || limit != was_limit;
            }
        } else if (what == SENT) {
            bool asks = updates || says && hdr.option.kind == JOIN && hdr.tcp.flags & (SYN | ACK | FIN | RST) == SYN;
            if (asks && free == NOWHERE) {
                refused.count(NO_PLACE);
            }
            if (asks && free != NOWHERE) {
                bit<32> weight = weight_of(hdr.option.weight);
                place = free;
                is[8:0] = standard_metadata.egress_spec;
                is[24:9] = weight[15:0];
                is[26:25] = updates ? JOINED : needs_check == 1 ? HALF : ASKED;
                changes = true;
                member_src.write(place, source);
                member_dst.write(place, target);
                member_host.write(place, hdr.ethernet.src ++ (bit<16>) standard_metadata.ingress_port);
                member_seen.write(place, now);
                // No epoch that the link has soon.
                member_told.write(place, 0xffff_ffff);
                member_knows.write(place, 0);
                member_left.write(place, 0);
            }
        }
        if (rate != 0 && place == NOWHERE && what != VISIT && !hdr.tick.isValid()) {
            bit<32> bytes;
            other_bytes.read(bytes, port);
            other_bytes.write(port, bytes + standard_metadata.packet_length);
        }

        // The member is another than it was.
        if (changes) {
            bit<32> old_port = (bit<32>) was[8:0];
            bit<32> new_port = (bit<32>) is[8:0];
            bool stays = was != 0 && is != 0 && old_port == new_port;
            member.write(place, is);
            member_limit.write(place, limit);
            if (was != 0 && !stays) {
                // Out of the list of its port.
                bit<32> before;
                bit<32> after;
                bit<32> at;
                previous.read(before, place);
                next.read(after, place);
                if (before == 0) {
                    head.write(old_port, after);
                } else {
                    next.write(before - 1, after);
                }
                if (after != 0) {
                    previous.write(after - 1, before);
                }
                cursor.read(at, old_port);
                if (at == place + 1) {
                    cursor.write(old_port, after);
                }
            }
            if (is == 0) {
                member_src.write(place, 0);
                member_dst.write(place, 0);
            } else if (!stays) {
                bit<32> after;
                head.read(after, new_port);
                head.write(new_port, place + 1);
                next.write(place, after);
                previous.write(place, 0);
                if (after != 0) {
                    previous.write(after - 1, place + 1);
                }
            }
            // Whether what the link gives to others has changed.
            bool told_to_all = was[26:26] != is[26:26] || !stays || was[24:9] != is[24:9] || was_limit != limit;
            if (was[26:26] == 1) {
                bit<32> total;
                if (was_limit == 0) {
                    weights.read(total, old_port);
                    weights.write(old_port, total - (bit<32>) was[24:9]);
                } else {
                    taken.read(total, old_port);
                    taken.write(old_port, total - was_limit);
                }
                flows.read(total, old_port);
                flows.write(old_port, total - 1);
                if (told_to_all) {
                    epoch.read(total, old_port);
                    epoch.write(old_port, total + 1);
                    walk_wanted.write(old_port, 1);
                    urgent.write(0, (bit<16>) was[8:0] + 1);
                }
            }
            if (is[26:26] == 1) {
                bit<32> total;
                if (limit == 0) {
                    weights.read(total, new_port);
                    weights.write(new_port, total + (bit<32>) is[24:9]);
                } else {
                    taken.read(total, new_port);
                    taken.write(new_port, total + limit);
                }
                flows.read(total, new_port);
                flows.write(new_port, total + 1);
                if (told_to_all) {
                    epoch.read(total, new_port);
                    epoch.write(new_port, total + 1);
                    walk_wanted.write(new_port, 1);
                    urgent.write(0, (bit<16>) is[8:0] + 1);
                }
            }
        }
    }
}

control PacingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == CLONED) {
            // A tick's clone becomes a notice: a TCP segment without flags, which no TCP takes for more than a lost one.
            hdr.ethernet.dst = meta.host;
            hdr.ethernet.src = SWITCH_ADDRESS;
            hdr.ethernet.type = TYPE_IPV4;
            hdr.tick.setInvalid();
            hdr.ipv4.setValid();
            hdr.ipv4.version = 4;
            hdr.ipv4.ihl = 5 + OPTION_WORDS;
            hdr.ipv4.dscp = 0;
            hdr.ipv4.ecn = 0;
            hdr.ipv4.total_length = 52;
            hdr.ipv4.identification = 0;
            hdr.ipv4.flags = 2;
            hdr.ipv4.fragment_offset = 0;
            hdr.ipv4.ttl = 64;
            hdr.ipv4.protocol = PROTOCOL_TCP;
            hdr.ipv4.checksum = 0;
            hdr.ipv4.src = meta.src;
            hdr.ipv4.dst = meta.dst;
            hdr.option.setValid();
            hdr.option.type = OPTION_PACING;
            hdr.option.length = OPTION_LENGTH;
            hdr.option.version = VERSION;
            hdr.option.kind = NOTICE;
            hdr.option.key = meta.key_number;
            hdr.option.hops = 0;
            hdr.option.link = meta.link;
            hdr.option.rate = meta.rate;
            hdr.option.weight = meta.weight;
            hdr.option.sequence = meta.epoch[7:0];
            hdr.option.check = 0;
            if (meta.keyed == 1) {
                hdr.option.check = check_of(meta.key, meta.dst ++ meta.dst_port ++ meta.src_port, meta.src, 0, hdr.option);
            }
            hdr.tcp.setValid();
            hdr.tcp.src_port = meta.src_port;
            hdr.tcp.dst_port = meta.dst_port;
            hdr.tcp.seq = meta.epoch;
            hdr.tcp.ack = 0;
            hdr.tcp.offset = 5;
            hdr.tcp.reserved = 0;
            hdr.tcp.flags = 0;
            hdr.tcp.window = 0;
            hdr.tcp.checksum = 0;
            hdr.tcp.urgent = 0;
        } else if (hdr.ipv4.isValid()) {
            bit<32> port = (bit<32>) standard_metadata.egress_port;
            bit<32> waiting = (bit<32>) standard_metadata.deq_qdepth + 1;
            bit<32> least;
            backlog.read(least, port);
            if (least == 0 || waiting < least) {
                backlog.write(port, waiting);
            }
        }
    }
}

control PacingCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        bool made = hdr.option.isValid() && hdr.option.kind == NOTICE && hdr.ethernet.src == SWITCH_ADDRESS;
        update_checksum(made,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
              hdr.option },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(made,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 16w20, hdr.tcp.src_port, hdr.tcp.dst_port, hdr.tcp.seq,
              hdr.tcp.ack, hdr.tcp.offset, hdr.tcp.reserved, hdr.tcp.flags, hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
    }
}

control PacingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(PacingParser(), PacingVerify(), PacingIngress(), PacingEgress(), PacingCompute(), PacingDeparser()) main;
