/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The pacing option (README.md, "The option"), and the packets that carry it.
 */
#pragma once
#include "../../../hosts/packets.h"
#include "layout.h"
#include "../../../hosts/siphash.h"

#define OPTION_TYPE 94
#define OPTION_LENGTH 12
/* Of IPv6, whose lengths leave out the first two bytes. */
#define OPTION_TYPE6 0x3e
#define OPTION_LENGTH6 10
/* Bytes from one option to the next in IPv6: they are padded. */
#define OPTION_ROOM6 16
/* The option's version and kind, in its third byte. */
#define VERSION_OF(head) ((head) >> 7)
#define KEY_OF(head) ((head) >> 6 & 1)
#define KIND_OF(head) ((head) >> 3 & 7)
#define HOPS_OF(head) ((head) & 7)
#define HEAD(key, kind) ((key) << 6 | (kind) << 3)
/* In place of a notice's hops: it is for all flows of this host that have a share of the link. */
#define FOR_ALL 1
#define MANTISSA 11

enum kind { JOIN, TRACE, NOTICE, UPDATE, SEEN };

struct option {
	u8 type, length, head, link;
	/* In network order. */
	u16 rate, weight;
	u8 sequence, check[3];
};

/* A packet with the option in front of its TCP header. */
struct told {
	struct ip_header ip;
	struct option option;
	struct tcp_header tcp;
};

/* The header of IPv6 that has the option. */
struct hop_by_hop {
	u8 next, length;
	struct option option;
	u8 padding[2];
};

struct told6 {
	struct ip6_header ip;
	struct hop_by_hop hop;
	struct tcp_header tcp;
};

#define DONT_FRAGMENT 0x4000

/* 16 bits of exponent and mantissa. */
ALWAYS_INLINE u32 number(u32 bits)
{
	return (bits & 0x7ff) << (bits >> MANTISSA & 31);
}

ALWAYS_INLINE u32 packed(u32 value)
{
	u32 exponent = 0;

	for (int step = 0; step < 21 && value > 0x7ff; step++) {
		value >>= 1;
		exponent++;
	}
	return exponent << MANTISSA | value;
}

ALWAYS_INLINE int is_ipv4(const u32 *address)
{
	return !(address[0] | address[1]) && address[2] == NETWORK32(0xffff);
}

ALWAYS_INLINE void map_ipv4(u32 *to, u32 address)
{
	to[0] = to[1] = 0;
	to[2] = NETWORK32(0xffff);
	to[3] = address;
}

/* The check of an option of a flow from a host to its peer; `bound` ties it to a packet. */
ALWAYS_INLINE u32 check_for(u64 key, const struct key *flow, u32 bound, const struct option *option)
{
	u32 first = (u32)option->head << 24 | (u32)option->link << 16 | NETWORK16(option->rate);
	u32 second = (u32)NETWORK16(option->weight) << 16 | (u32)option->sequence << 8;
	u32 ports = (u32)flow->local_port << 16 | flow->remote_port;
	u32 words[CHECKED_WORDS6];

	if (is_ipv4(flow->remote)) {
		words[0] = NETWORK32(flow->local[3]);
		words[1] = ports;
		words[2] = NETWORK32(flow->remote[3]);
		words[3] = bound;
		words[4] = first;
		words[5] = second;
		return check_of(key, words, CHECKED_WORDS);
	}
	for (int at = 0; at < 4; at++) {
		words[at] = NETWORK32(flow->local[at]);
		words[5 + at] = NETWORK32(flow->remote[at]);
	}
	words[4] = ports;
	words[9] = bound;
	words[10] = first;
	words[11] = second;
	return check_of(key, words, CHECKED_WORDS6);
}

ALWAYS_INLINE void fill(struct option *option, const struct settings *s, u32 kind, u32 link, u32 kbps, u32 weight, u32 sequence, u32 hops,
			const struct key *flow, u32 bound)
{
	u8 old = is_ipv4(flow->remote);
	u32 check = 0;

	option->type = old ? OPTION_TYPE : OPTION_TYPE6;
	option->length = old ? OPTION_LENGTH : OPTION_LENGTH6;
	option->head = HEAD(s->keyed ? s->signing : 0, kind) | hops;
	option->link = link;
	option->rate = NETWORK16((u16)packed(kbps));
	option->weight = NETWORK16((u16)packed(weight));
	option->sequence = sequence;
	if (s->keyed)
		check = check_for(s->keys[s->signing & 1], flow, bound, option);
	option->check[0] = check >> 16;
	option->check[1] = check >> 8;
	option->check[2] = check;
}

/* What stands around an option in IPv6. */
ALWAYS_INLINE void surround(struct hop_by_hop *hop)
{
	hop->next = PROTOCOL_TCP;
	hop->length = 1;
	/* PadN. */
	hop->padding[0] = 1;
	hop->padding[1] = 0;
}

/* RFC 1071, of an even number of bytes. */
ALWAYS_INLINE u32 sum_of(const void *data, u32 bytes, u32 sum)
{
	const u16 *words = data;

	for (u32 at = 0; at < bytes / 2; at++)
		sum += words[at];
	return sum;
}

ALWAYS_INLINE u16 folded(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The TCP header of a pure ACK of a connection; `sum` is that of the addresses. It says what TCP's last one did. One that acknowledged more
 * would tell a peer with accurate ECN of progress, with a count of CE that is none. */
ALWAYS_INLINE void write_tcp(struct tcp_header *tcp, const struct key *key, struct tcp_sock *tp, u32 sum)
{
	u32 window = tp->rcv_wnd >> BITS16(tp, rx_opt.rcv_wscale);

	tcp->source = NETWORK16(key->local_port);
	tcp->target = NETWORK16(key->remote_port);
	tcp->seq = NETWORK32(tp->snd_nxt);
	tcp->ack = NETWORK32(tp->rcv_wup);
	tcp->offset = 5 << 4;
	tcp->flags = ACK;
	tcp->window = NETWORK16((u16)smaller(window, 0xffff));
	tcp->checksum = 0;
	tcp->urgent = 0;
	sum += NETWORK16(PROTOCOL_TCP) + NETWORK16(sizeof(*tcp));
	tcp->checksum = folded(sum_of(tcp, sizeof(*tcp), sum));
}

/* A pure ACK of a connection, with an option. */
ALWAYS_INLINE void write_ack(struct told *out, const struct key *key, struct tcp_sock *tp)
{
	out->ip.version_length = 0x48;
	out->ip.tos = 0;
	out->ip.length = NETWORK16(sizeof(*out));
	out->ip.id = 0;
	out->ip.fragment = NETWORK16(DONT_FRAGMENT);
	out->ip.ttl = 64;
	out->ip.protocol = PROTOCOL_TCP;
	out->ip.checksum = 0;
	out->ip.source = key->local[3];
	out->ip.target = key->remote[3];
	out->ip.checksum = folded(sum_of(out, sizeof(out->ip) + sizeof(out->option), 0));
	write_tcp(&out->tcp, key, tp, sum_of(&out->ip.source, 8, 0));
}

ALWAYS_INLINE void write_ack6(struct told6 *out, const struct key *key, struct tcp_sock *tp)
{
	out->ip.version_class = 6 << 4;
	out->ip.class_label = 0;
	out->ip.label = 0;
	out->ip.length = NETWORK16(sizeof(out->hop) + sizeof(out->tcp));
	out->ip.next = PROTOCOL_HOP_BY_HOP;
	out->ip.hops = 64;
	for (int at = 0; at < 4; at++) {
		out->ip.source[at] = key->local[at];
		out->ip.target[at] = key->remote[at];
	}
	surround(&out->hop);
	write_tcp(&out->tcp, key, tp, sum_of(out->ip.source, 32, 0));
}
