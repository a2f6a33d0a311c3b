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
/* The option's version and kind, in its third byte. */
#define VERSION_OF(head) ((head) >> 7)
#define KEY_OF(head) ((head) >> 6 & 1)
#define KIND_OF(head) ((head) >> 3 & 7)
#define HEAD(key, kind) ((key) << 6 | (kind) << 3)
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

/* The check of an option of a flow from a host to its peer; `bound` ties it to a packet. */
ALWAYS_INLINE u32 check_for(u64 key, const struct key *flow, u32 bound, const struct option *option)
{
	u32 words[CHECKED_WORDS] = {
		NETWORK32(flow->local),
		(u32)flow->local_port << 16 | flow->remote_port,
		NETWORK32(flow->remote),
		bound,
		(u32)option->head << 24 | (u32)option->link << 16 | NETWORK16(option->rate),
		(u32)NETWORK16(option->weight) << 16 | (u32)option->sequence << 8,
	};

	return check_of(key, words);
}

ALWAYS_INLINE void fill(struct option *option, const struct settings *s, u32 kind, u32 link, u32 kbps, u32 weight, u32 sequence,
			const struct key *flow, u32 bound)
{
	u32 check = 0;

	option->type = OPTION_TYPE;
	option->length = OPTION_LENGTH;
	option->head = HEAD(s->keyed ? s->signing : 0, kind);
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

/* A pure ACK of a connection, with an option. */
ALWAYS_INLINE void write_ack(struct told *out, const struct key *key, struct tcp_sock *tp)
{
	u32 left = tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt, sum;

	if ((s32)left < 0)
		left = 0;
	left >>= BITS16(tp, rx_opt.rcv_wscale);
	out->ip.version_length = 0x48;
	out->ip.tos = 0;
	out->ip.length = NETWORK16(sizeof(*out));
	out->ip.id = 0;
	out->ip.fragment = NETWORK16(DONT_FRAGMENT);
	out->ip.ttl = 64;
	out->ip.protocol = PROTOCOL_TCP;
	out->ip.checksum = 0;
	out->ip.source = key->local;
	out->ip.target = key->remote;
	out->ip.checksum = folded(sum_of(out, sizeof(out->ip) + sizeof(out->option), 0));
	out->tcp.source = NETWORK16(key->local_port);
	out->tcp.target = NETWORK16(key->remote_port);
	out->tcp.seq = NETWORK32(tp->snd_nxt);
	out->tcp.ack = NETWORK32(tp->rcv_nxt);
	out->tcp.offset = 5 << 4;
	out->tcp.flags = ACK;
	out->tcp.window = NETWORK16((u16)smaller(left, 0xffff));
	out->tcp.checksum = 0;
	out->tcp.urgent = 0;
	sum = sum_of(&out->ip.source, 8, NETWORK16(PROTOCOL_TCP) + NETWORK16(sizeof(out->tcp)));
	out->tcp.checksum = folded(sum_of(&out->tcp, sizeof(out->tcp), sum));
}
