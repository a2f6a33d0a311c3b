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

#define PORTS 512

// Resubmissions of a tick: members that it visits. The reference switch sets no bound; Tidegate's is 64.
#define STEPS 60

const bit<32> RESUBMITTED = 6;
const bit<32> CLONED = 1;

// Counters of what was refused. NO_PLACE: an aggregate counts the flow.
const bit<32> NO_PLACE = 0;
const bit<32> NO_ROOM = 1;
const bit<32> BAD_VERSION = 2;
const bit<32> BAD_CHECK = 3;

// How often a list is walked when nothing has changed, in microseconds.
const bit<48> SCANNING = 1048576;

// What a packet is: a step of a walk; sent by a flow through a managed link; a SYN-ACK or a reset for such a flow.
const bit<8> PASSES = 0;
const bit<8> VISIT = 1;
const bit<8> SENT = 2;
const bit<8> ANSWER = 3;

// The source address of notices.
const bit<48> SWITCH_ADDRESS = 0x02_00_00_70_61_63;

struct metadata_t {
    // A walk, from one step to the next.
    @field_list(1) bit<8>  steps;
    @field_list(1) bit<16> port;
    // When and where a packet came that is resubmitted: the reference switch has 0 for both.
    @field_list(1) bit<48> came_at;
    @field_list(1) bit<9>  came_from;
    // A notice, from the walk to egress.
    @field_list(2) bit<48> host;
    @field_list(2) bit<32> src;
    @field_list(2) bit<32> dst;
    @field_list(2) bit<1>  six;
    @field_list(2) bit<128> src6;
    @field_list(2) bit<128> dst6;
    @field_list(2) bit<16> src_port;
    @field_list(2) bit<16> dst_port;
    @field_list(2) bit<32> epoch;
    @field_list(2) bit<1>  keyed;
    @field_list(2) bit<1>  key_number;
    @field_list(2) bit<64> key;
    @field_list(2) bit<8>  link;
    @field_list(2) bit<3>  hops;
    @field_list(2) bit<16> rate;
    @field_list(2) bit<16> weight;
}

#include "option.p4"
#include "number.p4"
#include "links.p4"
#include "members.p4"
#include "check.p4"
#include "trace.p4"
#include "notice.p4"

control PacingVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PacingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;
    Measure() measure;
    HashAddresses() addresses;
    Find() find;
    Same() is_same;
    FindAggregate() find_aggregate;
    Mark() mark;
    WriteTrace() write_trace;
    TellWithOthers() tell_with;
    Change() change;

    // Times in microseconds. Without a packet for so long, a member is gone; one whose handshake is not done, after an eighth of it.
    register<bit<48>>(1) idle;
    // A notice that nobody has seen is sent again after so long.
    register<bit<48>>(1) again;
    // Whether options have to have a check, the keys, and the number of that which checks are made with.
    register<bit<1>>(1)  keyed;
    register<bit<64>>(2) keys;
    register<bit<1>>(1)  signing;
    // Whether a trace has an option for each link, as long as there is room.
    register<bit<1>>(1)  appends;

    counter(4, CounterType.packets) refused;
    counter(PORTS, CounterType.packets) notices;

    apply {
        if (standard_metadata.instance_type == RESUBMITTED) {
            standard_metadata.ingress_global_timestamp = meta.came_at;
            standard_metadata.ingress_port = meta.came_from;
        }
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
                measure.apply(port, rate, now);
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
                    meta.came_at = now;
                    meta.came_from = standard_metadata.ingress_port;
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
                    // What answers a flow comes in by the port that the flow goes out by. A reset may be either end's: first it is
                    // taken for its sender's.
                    bit<32> there;
                    capacity.read(there, (bit<32>) standard_metadata.ingress_port);
                    bool sure = flags & RST == 0 || what == PASSES || standard_metadata.instance_type == RESUBMITTED;
                    what = there != 0 && sure ? ANSWER : what;
                }
            }
        }

        if (what != PASSES) {
            // Whose it is.
            flow_t flow;
            bit<32> free = NOWHERE;
            ends_t ends;
            bool six = hdr.ipv6.isValid();
            flow.source = 0;
            flow.target = 0;
            ends.src = 0;
            ends.dst = 0;
            if (what == SENT || what == ANSWER) {
                if (six) {
                    ends.src = what == SENT ? hdr.ipv6.src : hdr.ipv6.dst;
                    ends.dst = what == SENT ? hdr.ipv6.dst : hdr.ipv6.src;
                    addresses.apply(ends, flow);
                } else {
                    flow.source[63:32] = what == SENT ? hdr.ipv4.src : hdr.ipv4.dst;
                    flow.target = what == SENT ? hdr.ipv4.dst : hdr.ipv4.src;
                }
                // TCP has no multicast: such an address would be taken for a hash.
                what = !six && flow.target[31:28] == HASHED ? PASSES : what;
                flow.source[31:0] = what == SENT ? hdr.tcp.src_port ++ hdr.tcp.dst_port : hdr.tcp.dst_port ++ hdr.tcp.src_port;
                if (what != PASSES) {
                    find.apply(flow, place, free);
                    if (six && place != NOWHERE) {
                        // Who has another's hash has no place of its own.
                        bool same;
                        is_same.apply(ends, place, same);
                        place = same ? place : NOWHERE;
                        free = NOWHERE;
                    }
                }
            }

            // Most packets are a member's that goes on as it is, and change nothing.
            if (what == SENT && place != NOWHERE && !hdr.option.isValid() && hdr.tcp.flags & (FIN | RST) == 0) {
                member.read(was, place);
                if (was[26:25] == JOINED && was[8:0] == standard_metadata.egress_spec) {
                    member_seen.write(place, now);
                    return;
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
                bit<32> bound = what == ANSWER ? hdr.tcp.ack : (hdr.option.kind == JOIN ? hdr.tcp.seq : 32w0);
                keys.read(other, (bit<32>) hdr.option.key);
                if (check_of(other, flow, six, ends, bound, hdr.option) != hdr.option.check) {
                    refused.count(BAD_CHECK);
                    says = false;
                }
            }
            bool updates = says && what == SENT && hdr.option.kind == UPDATE;
            bool asks = updates || says && what == SENT && hdr.option.kind == JOIN && hdr.tcp.flags & (SYN | ACK | FIN | RST) == SYN;

            // Without a place of its own, an aggregate may have the flow.
            bit<32> bits = 0;
            bool    known = true;
            if ((what == SENT || what == ANSWER) && place == NOWHERE) {
                bit<32> way = what == SENT ? port : (bit<32>) standard_metadata.ingress_port;
                bit<32> some;
                bool    full = asks && free == NOWHERE;
                aggregates.read(some, way);
                if (some != 0 || full) {
                    find_aggregate.apply(flow, way, place, bits, known);
                    full = full && !known;
                    if (full) {
                        refused.count(NO_PLACE);
                    }
                    // Nobody has checked a SYN: the flow may ask again.
                    if (!known && !(full && (updates || needs_check == 1))) {
                        place = NOWHERE;
                    }
                }
            }
            if (place != NOWHERE) {
                member.read(was, place);
                if (place < PLACES) {
                    member_limit.read(was_limit, place);
                }
                is = was;
                limit = was_limit;
                if (what == ANSWER) {
                    port = (bit<32>) was[8:0];
                    capacity.read(rate, port);
                }
            }
            bool single = place < PLACES;

            // What the link's members share: what it has, less what others take of it; and the sum of their weights, the flow's included.
            bit<32> sum = 0;
            bit<32> share = 0;
            bit<32> count = 0;
            bit<8>  id = 0;
            if (place != NOWHERE && (what != SENT || updates)) {
                bit<32> gone;
                bit<32> more;
                bit<32> drains;
                bit<1>  hosts;
                // What it adds to what counts already.
                bool    counts = was[26:26] == 1 && was_limit == 0;
                bit<32> weight = updates && single ? weight_of(hdr.option.weight) : (bit<32>) was[24:9];
                bit<32> less = counts ? (bit<32>) was[24:9] : 0;
                if (!single) {
                    weight = known ? less : less + 1;
                }
                weights.read(sum, port);
                taken.read(gone, port);
                others.read(more, port);
                epoch.read(count, port);
                link_id.read(id, port);
                draining.read(drains, port);
                by_host.read(hosts, 0);
                if (hosts == 1) {
                    // A host's flows share what each host has.
                    bit<32> of = 0;
                    bit<32> own = less;
                    if (single) {
                        member_of.read(of, place);
                    }
                    if (of != 0) {
                        host_weight.read(own, of - 1);
                    }
                    sum = own == 0 ? sum + 1 : sum;
                    bit<64> parts = (bit<64>) sum * (bit<64>) (own - less + weight);
                    sum = parts >> 31 == 0 ? (bit<32>) parts : 32w0x7fff_ffff;
                } else {
                    sum = sum - less + weight;
                }
                gone = gone + more + drains - was_limit;
                sum = sum == 0 ? 32w1 : sum;
                share = rate > gone + (rate >> 5) ? rate - gone : rate >> 5;
            }

            // What becomes of it.
            bool tells = false;
            bool forgets = false;
            bit<3> all = 0;
            bit<64> host = 0;
            if (what == VISIT) {
                bit<48> seen;
                bit<48> longest;
                member_seen.read(seen, place);
                idle.read(longest, 0);
                longest = was[26:25] == JOINED ? longest : longest >> 3;
                if (now - seen >= longest) {
                    is = 0;
                    changes = true;
                }
                if (!single) {
                    bit<48> since;
                    bit<32> at = place - PLACES;
                    bit<32> new;
                    aggregate_since.read(since, at);
                    aggregate_new.read(new, at);
                    if (changes) {
                        aggregate_new.write(at, 0);
                        aggregate_old.write(at, 0);
                    } else if (now - since >= longest) {
                        aggregate_since.write(at, now);
                        aggregate_old.write(at, new);
                        aggregate_new.write(at, 0);
                        bit<32> left = ones(new);
                        is[24:9] = left[15:0];
                        is = new == 0 ? 0 : is;
                        changes = is != was;
                    }
                } else if (!changes && was[26:26] == 1) {
                    bit<32> told;
                    bit<1>  knows;
                    bit<48> told_at;
                    bit<48> pause;
                    bit<9>  left;
                    member_told.read(told, place);
                    member_knows.read(knows, place);
                    member_told_at.read(told_at, place);
                    again.read(pause, 0);
                    member_left.read(left, place);
                    if (left[8:8] == 1 && now - told_at >= pause) {
                        left[8:8] = 0;
                    }
                    forgets = left != 0 && left[8:8] == 0;
                    // One that has been told once, and has all that the link gives, is told together with its host's others.
                    bit<32> of = 0;
                    if (!forgets && was_limit == 0 && told != NEVER && knows == 1) {
                        tell_with.apply(place, count, now, pause, of, tells);
                    }
                    if (of == 0) {
                        tells = forgets || told != count || knows == 0 && now - told_at >= pause;
                    } else {
                        all = FOR_ALL;
                    }
                    if (tells) {
                        walk_at.write(port, now + pause);
                        if (of == 0) {
                            member_told_at.write(place, now);
                        }
                        if (forgets) {
                            member_left.write(place, left | 0x100);
                            walk_wanted.write(port, 1);
                            id = left[7:0];
                        } else if (of == 0) {
                            member_told.write(place, count);
                            member_knows.write(place, 0);
                        }
                        member_src.read(flow.source, place);
                        member_dst.read(flow.target, place);
                        member_host.read(host, place);
                        // TCP has no multicast: it stands for a hash.
                        if (flow.target[31:28] == HASHED) {
                            six = true;
                            member_src6.read(ends.src, place);
                            member_dst6.read(ends.dst, place);
                        }
                    }
                }
            } else if (what == ANSWER && place != NOWHERE) {
                if (hdr.tcp.flags & RST != 0) {
                    changes = true;
                    is = 0;
                } else {
                    bool is_trace = says && hdr.option.kind == TRACE;
                    if (is_trace || !hdr.option.isValid()) {
                        bit<1> each;
                        bool   room;
                        appends.read(each, 0);
                        write_trace.apply(hdr, flow, ends, is_trace, each, key, key_number, needs_check, id, share, sum, room);
                        if (!room) {
                            refused.count(NO_ROOM);
                        }
                    }
                }
            } else if (what == SENT && place != NOWHERE) {
                member_seen.write(place, now);
                if (hdr.tcp.flags & (FIN | RST) != 0) {
                    is = 0;
                    changes = true;
                } else if (single) {
                    if (was[26:25] != JOINED && hdr.tcp.flags & (SYN | ACK) == ACK) {
                        is[26:25] = JOINED;
                    }
                    is[8:0] = standard_metadata.egress_spec;
                    if (is[8:0] != was[8:0]) {
                        bit<8> old;
                        link_id.read(old, (bit<32>) was[8:0]);
                        member_left.write(place, 1w0 ++ old);
                        member_told.write(place, NEVER);
                    }
                    if (updates) {
                        // It is answered: the host is told again.
                        member_knows.write(place, 0);
                        bit<32> weight = weight_of(hdr.option.weight);
                        is[24:9] = weight[15:0];
                        limit = number(hdr.option.rate);
                        if (hdr.option.link == id || (bit<64>) limit * (bit<64>) sum >= (bit<64>) weight * (bit<64>) share) {
                            limit = 0;
                        }
                    }
                    if (says && hdr.option.kind == SEEN) {
                        bit<8>  own;
                        bit<32> told;
                        bit<32> of;
                        link_id.read(own, port);
                        member_told.read(told, place);
                        member_of.read(of, place);
                        bool for_all = hdr.option.hops == FOR_ALL;
                        if (for_all && of != 0) {
                            host_told.read(told, of - 1);
                        }
                        if (own == hdr.option.link && told[7:0] == hdr.option.sequence) {
                            if (!for_all) {
                                bit<32> own_members = 0;
                                member_knows.write(place, 1);
                                if (of != 0) {
                                    host_members.read(own_members, of - 1);
                                }
                                // Its host has no others.
                                of = own_members == 1 ? of : 0;
                            }
                            if (of != 0) {
                                host_told.write(of - 1, told);
                                host_knows.write(of - 1, 1);
                            }
                        }
                        bit<9> left;
                        member_left.read(left, place);
                        if (left[7:0] == hdr.option.link) {
                            member_left.write(place, 0);
                        }
                    }
                    changes = is != was || limit != was_limit;
                } else {
                    tells = updates;
                    host = hdr.ethernet.src ++ (bit<16>) standard_metadata.ingress_port;
                    if (was == 0) {
                        is = (bit<32>) (JOINED ++ 16w0 ++ standard_metadata.egress_spec);
                        aggregate_since.write(place - PLACES, now);
                    }
                    if (!known) {
                        is[24:9] = is[24:9] + 1;
                        changes = true;
                    }
                    mark.apply(place, bits, false);
                }
            } else if (what == SENT && hdr.tcp.flags & RST != 0 && standard_metadata.instance_type != RESUBMITTED) {
                meta.came_at = now;
                meta.came_from = standard_metadata.ingress_port;
                resubmit_preserving_field_list(1);
            } else if (asks && free != NOWHERE) {
                bit<32> weight = weight_of(hdr.option.weight);
                place = free;
                is[8:0] = standard_metadata.egress_spec;
                is[24:9] = weight[15:0];
                // An UPDATE may come behind the flow's end: it counts, and stays for long when a further packet comes.
                is[26:25] = updates || needs_check == 1 ? HALF : ASKED;
                changes = true;
                member_src.write(place, flow.source);
                member_dst.write(place, flow.target);
                if (six) {
                    member_src6.write(place, ends.src);
                    member_dst6.write(place, ends.dst);
                }
                host = hdr.ethernet.src ++ (bit<16>) standard_metadata.ingress_port;
                member_host.write(place, host);
                member_seen.write(place, now);
                member_told.write(place, NEVER);
                member_knows.write(place, 0);
                member_left.write(place, 0);
            }
            if (tells) {
                meta.src = flow.target;
                meta.dst = flow.source[63:32];
                meta.six = six ? 1w1 : 1w0;
                meta.src6 = ends.dst;
                meta.dst6 = ends.src;
                meta.dst_port = flow.source[31:16];
                meta.src_port = flow.source[15:0];
                meta.host = host[63:16];
                meta.epoch = count;
                meta.link = id;
                meta.hops = all;
                meta.rate = forgets ? 16w0 : packed(share);
                meta.weight = packed_up(sum);
                meta.keyed = needs_check;
                meta.key_number = key_number;
                meta.key = key;
                notices.count(port);
                // Session p + 1 leads to port p.
                clone_preserving_field_list(CloneType.I2E, (bit<32>) host[8:0] + 1, 2);
            }
            if (changes) {
                if (is == 0 && !single && what != VISIT) {
                    // One of its flows.
                    mark.apply(place, bits, true);
                    is = was;
                    is[24:9] = was[24:9] - 1;
                    is = is[24:9] == 0 ? 0 : is;
                }
                change.apply(place, flow.source[63:32], was, is, was_limit, limit);
            }
        }
        if (rate != 0 && place == NOWHERE && !hdr.tick.isValid()) {
            bit<32> bytes;
            other_bytes.read(bytes, port);
            other_bytes.write(port, bytes + standard_metadata.packet_length);
        }
    }
}

control PacingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(PacingParser(), PacingVerify(), PacingIngress(), PacingEgress(), PacingCompute(), PacingDeparser()) main;
