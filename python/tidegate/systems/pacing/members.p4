// Members: the flows of links, by a hash of their addresses and ports, and in a list for each port.
//
// A member has one of three places, by its hash: one in each third of the registers. A flow for which all three are taken is
// counted by an aggregate: 32 flows at most, of which each has a bit by its hash. Aggregates stand behind the members' places.

#ifndef WAY_BITS
#define WAY_BITS 16
#endif
#define WAY (1 << WAY_BITS)
#define PLACES (3 << WAY_BITS)
#define ALL (4 << WAY_BITS)
#define NOWHERE 32w0xffff_ffff

// A host's address and both ports; the other's address. Of IPv6 addresses, a hash.
struct flow_t {
    bit<64> source;
    bit<32> target;
}

// Addresses of IPv6: a host's and the other's.
struct ends_t {
    bit<128> src;
    bit<128> dst;
}

// The first bits of an IPv6 address's hash: those of IPv4's multicast addresses, which TCP does not have.
const bit<4> HASHED = 0xe;

// So often a host is told for all its flows; then each of them.
const bit<8> TRIES = 3;

// No epoch that a link has soon.
const bit<32> NEVER = 0xffff_ffff;

// A member's state: it has sent a SYN; the same, with a check; its handshake is done. The last two count: their first bit is 1.
const bit<2> ASKED = 1;
const bit<2> HALF = 3;
const bit<2> JOINED = 2;

// Of a member, by its place. Of IPv6 addresses, a hash.
register<bit<64>>(PLACES) member_src;
register<bit<32>>(PLACES) member_dst;
register<bit<128>>(PLACES) member_src6;
register<bit<128>>(PLACES) member_dst6;
// The host's Ethernet address, and the port that leads to it.
register<bit<64>>(PLACES) member_host;
// State (2 bits), weight (16) and egress port (9). An aggregate's weight is the number of its flows.
register<bit<32>>(ALL) member;
// The rate that it takes at most; 0: what the link gives.
register<bit<32>>(PLACES) member_limit;
register<bit<48>>(ALL) member_seen;
// The epoch of which it has been told, whether it has said so, and when it was told.
register<bit<32>>(PLACES) member_told;
register<bit<1>>(PLACES)  member_knows;
register<bit<48>>(PLACES) member_told_at;
// The link that it has left, which its host is to forget; the first bit: it has been told so.
register<bit<9>>(PLACES)  member_left;
register<bit<32>>(ALL) next;
register<bit<32>>(ALL) previous;

// Whether hosts have equal shares, whatever the number of their flows.
register<bit<1>>(1) by_host;
// Of a host at a port: its address and the port, how many members are its, and the sum of the weights of those that share.
register<bit<64>>(WAY) host_key;
register<bit<32>>(WAY) host_members;
register<bit<32>>(WAY) host_weight;
// A member's host, plus 1; 0: it is alone.
register<bit<32>>(PLACES) member_of;
// Whether a notice is for all flows of a host. Of a host: the epoch of which it has been told, whether it has said so, when it was
// told, how often, and by whose notice.
register<bit<1>>(1) tell_by_host;
register<bit<32>>(WAY) host_told;
register<bit<1>>(WAY)  host_knows;
register<bit<48>>(WAY) host_told_at;
register<bit<8>>(WAY)  host_tries;
register<bit<32>>(WAY) host_carrier;

// Of an aggregate: bits of flows that were seen since a time, and of those that were before. So a flow without a packet is gone in
// twice the idle time.
register<bit<32>>(WAY) aggregate_new;
register<bit<32>>(WAY) aggregate_old;
register<bit<48>>(WAY) aggregate_since;
// By port.
register<bit<32>>(PORTS) aggregates;

// What stands for IPv6 addresses.
control HashAddresses(in ends_t ends, inout flow_t flow) {
    apply {
        bit<32> spread;
        hash(spread, HashAlgorithm.crc32, 32w0, { ends.src }, 64w0x1_0000_0000);
        flow.source[63:32] = spread;
        hash(spread, HashAlgorithm.crc32, 32w0, { ends.dst }, 64w0x1_0000_0000);
        flow.target = HASHED ++ spread[27:0];
    }
}

// Whether a place is a flow's, or is free.
control Look(in flow_t flow, in bit<32> at, inout bit<32> place, inout bit<32> free) {
    apply {
        bit<64> there;
        bit<32> there_to;
        member_src.read(there, at);
        member_dst.read(there_to, at);
        if (there == flow.source && there_to == flow.target) {
            place = at;
        } else {
            free = there == 0 && free == NOWHERE ? at : free;
        }
    }
}

// Whether a member has these addresses, whose hash it has.
control Same(in ends_t ends, in bit<32> place, out bool same) {
    apply {
        bit<128> src;
        bit<128> dst;
        member_src6.read(src, place);
        member_dst6.read(dst, place);
        same = src == ends.src && dst == ends.dst;
    }
}

// A flow's place, or a free one.
control Find(in flow_t flow, out bit<32> place, out bit<32> free) {
    Look() first;
    Look() second;
    Look() third;

    apply {
        bit<32> spread;
        place = NOWHERE;
        free = NOWHERE;
        hash(spread, HashAlgorithm.crc32, 32w0, { flow.source, flow.target }, 64w0x1_0000_0000);
        first.apply(flow, spread & (WAY - 1), place, free);
        if (place == NOWHERE) {
            second.apply(flow, WAY + (spread >> (32 - WAY_BITS)), place, free);
        }
        if (place == NOWHERE) {
            third.apply(flow, 2 * WAY + ((spread >> 7) * 0x9e37 >> 3 & (WAY - 1)), place, free);
        }
    }
}

// The place of a flow's aggregate at a port, and the flow's bit; `known`: the bit is set.
control FindAggregate(in flow_t flow, in bit<32> port, out bit<32> place, out bit<32> bits, out bool known) {
    apply {
        bit<32> spread;
        bit<32> new;
        bit<32> old;
        hash(spread, HashAlgorithm.crc32, 32w0, { flow.target, flow.source, port }, 64w0x1_0000_0000);
        bits = 32w1 << (bit<8>) spread[31:27];
        spread = spread & (WAY - 1);
        place = PLACES + spread;
        aggregate_new.read(new, spread);
        aggregate_old.read(old, spread);
        known = (new | old) & bits != 0;
    }
}

// How many bits are 1.
bit<32> ones(in bit<32> value) {
    bit<32> sum = value - (value >> 1 & 0x5555_5555);
    sum = (sum & 0x3333_3333) + (sum >> 2 & 0x3333_3333);
    sum = sum + (sum >> 4) & 0x0f0f_0f0f;
    sum = sum + (sum >> 8);
    return sum + (sum >> 16) & 0x3f;
}

// A flow of an aggregate that has been seen, or has gone.
control Mark(in bit<32> place, in bit<32> bits, in bool goes) {
    apply {
        bit<32> new;
        bit<32> old;
        bit<32> at = place - PLACES;
        aggregate_new.read(new, at);
        if (goes) {
            aggregate_old.read(old, at);
            aggregate_old.write(at, old & ~bits);
            aggregate_new.write(at, new & ~bits);
        } else {
            aggregate_new.write(at, new | bits);
        }
    }
}

// A place for a host at a port.
control FindHost(in bit<64> key, out bit<32> place, out bit<1> known) {
    apply {
        bit<32> spread;
        bit<64> first;
        bit<64> second;
        bit<32> other;
        hash(spread, HashAlgorithm.crc32, 32w0, { key }, 64w0x1_0000_0000);
        other = spread >> (32 - WAY_BITS);
        spread = spread & (WAY - 1);
        host_key.read(first, spread);
        host_key.read(second, other);
        known = first == key || second == key ? 1w1 : 1w0;
        place = first == key ? spread : (second == key ? other : (first == 0 ? spread : (second == 0 ? other : NOWHERE)));
    }
}

// Whether a member's host is to be told now, by a notice in this member's name. `of`: its host, plus 1; 0: the member is to be told by
// itself, as it is alone, or its host has not answered for long.
control TellWithOthers(in bit<32> place, in bit<32> count, in bit<48> now, in bit<48> pause, out bit<32> of, out bool tells) {
    apply {
        bit<1> wanted;
        of = 0;
        tells = false;
        tell_by_host.read(wanted, 0);
        if (wanted == 1) {
            member_of.read(of, place);
        }
        if (of != 0) {
            bit<32> at = of - 1;
            bit<32> told;
            bit<1>  knows;
            bit<48> told_at;
            bit<8>  tries;
            bit<32> carrier;
            bit<32> own_members;
            host_told.read(told, at);
            host_knows.read(knows, at);
            host_told_at.read(told_at, at);
            host_tries.read(tries, at);
            host_carrier.read(carrier, at);
            host_members.read(own_members, at);
            if (told != count) {
                tells = true;
                tries = 1;
            } else if (knows == 0 && now - told_at >= pause) {
                // Another of its flows tries: this one may be gone.
                tells = tries < TRIES && (carrier != place || own_members == 1);
                of = tries < TRIES ? of : 0;
                tries = tries + 1;
            }
            if (tells) {
                host_told.write(at, count);
                host_knows.write(at, 0);
                host_told_at.write(at, now);
                host_tries.write(at, tries);
                host_carrier.write(at, place);
            }
        }
    }
}

// A member's weight counts at its port, or does not any more.
control Weigh(in bit<32> port, in bit<32> of, in bit<32> weight, in bool comes, in bit<1> hosts) {
    apply {
        bit<32> total;
        bit<32> change = weight;
        if (hosts == 1) {
            // A host counts once.
            change = 1;
            if (of != 0) {
                host_weight.read(total, of - 1);
                total = comes ? total + weight : total - weight;
                host_weight.write(of - 1, total);
                change = total == (comes ? weight : 0) ? 32w1 : 32w0;
            }
        }
        weights.read(total, port);
        weights.write(port, comes ? total + change : total - change);
    }
}

// What the link gives to others has changed.
control Announce(in bit<32> port) {
    apply {
        bit<32> count;
        epoch.read(count, port);
        epoch.write(port, count + 1);
        walk_wanted.write(port, 1);
        urgent.write(0, (bit<16>) port + 1);
    }
}

// A member becomes another than it was: state, weight, port and limit. 0 in place of them: there is none.
control Change(in bit<32> place, in bit<32> source, in bit<32> was, in bit<32> is, in bit<32> was_limit, in bit<32> limit) {
    Weigh() goes;
    Weigh() comes;
    FindHost() host;
    Announce() tell_old;
    Announce() tell_new;

    apply {
        bit<32> old_port = (bit<32>) was[8:0];
        bit<32> new_port = (bit<32>) is[8:0];
        bool stays = was != 0 && is != 0 && old_port == new_port;
        bool single = place < PLACES;
        bit<1> hosts;
        bit<1> known_hosts;
        bit<32> of = 0;
        by_host.read(hosts, 0);
        tell_by_host.read(known_hosts, 0);
        known_hosts = known_hosts | hosts;
        if (known_hosts == 1 && single && was != 0) {
            member_of.read(of, place);
        }
        member.write(place, is);
        if (single) {
            member_limit.write(place, limit);
        }
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
            if (single) {
                member_src.write(place, 0);
                member_dst.write(place, 0);
            }
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
        bit<32> total;
        if (was[26:26] == 1) {
            if (was_limit == 0) {
                goes.apply(old_port, of, (bit<32>) was[24:9], false, hosts);
            } else {
                taken.read(total, old_port);
                taken.write(old_port, total - was_limit);
            }
            flows.read(total, old_port);
            flows.write(old_port, total - (single ? 32w1 : (bit<32>) was[24:9]));
            if (told_to_all) {
                tell_old.apply(old_port);
            }
        }
        if (known_hosts == 1 && single && !stays) {
            if (of != 0) {
                host_members.read(total, of - 1);
                host_members.write(of - 1, total - 1);
                if (total == 1) {
                    host_key.write(of - 1, 0);
                }
                of = 0;
            }
            if (is != 0) {
                bit<1> known;
                bit<32> at;
                bit<64> key = source ++ 23w0 ++ is[8:0];
                host.apply(key, at, known);
                if (at != NOWHERE) {
                    host_members.read(total, at);
                    total = known == 1 ? total : 0;
                    host_members.write(at, total + 1);
                    if (known == 0) {
                        host_key.write(at, key);
                        host_weight.write(at, 0);
                        host_told.write(at, NEVER);
                    }
                    of = at + 1;
                }
                member_of.write(place, of);
            }
        }
        if (is[26:26] == 1) {
            if (limit == 0) {
                comes.apply(new_port, of, (bit<32>) is[24:9], true, hosts);
            } else {
                taken.read(total, new_port);
                taken.write(new_port, total + limit);
            }
            flows.read(total, new_port);
            flows.write(new_port, total + (single ? 32w1 : (bit<32>) is[24:9]));
            if (told_to_all) {
                tell_new.apply(new_port);
            }
        }
        if (!single) {
            if (was == 0 && is != 0) {
                aggregates.read(total, new_port);
                aggregates.write(new_port, total + 1);
            } else if (is == 0) {
                aggregates.read(total, old_port);
                aggregates.write(old_port, total - 1);
            }
        }
    }
}
