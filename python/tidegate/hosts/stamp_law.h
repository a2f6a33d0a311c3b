/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The arithmetic of `stamp.c`: the law of the simulated control (crates/transport/src/cc/stamp.rs, stamp_field.rs, wire_window.rs) in whole
 * numbers. Shares and stamps, in base round trips, have 20 bits behind the point. Rates are bit/s up to 100 Gbit/s, times nanoseconds
 * up to 1 s; with these no product exceeds 64 bits. A stamp counts up to 1024 base round trips. A signed division is made of unsigned ones, as BPF has no other.
 */
#pragma once
#include "stamp_field.h"

#define POINT 20
#define ONE (1 << POINT)
/* Additive step that a long queue leaves: a fifth. */
#define LEAST_GATE (ONE / 5)
/* The rate grows at the full gain, whatever the round trip, where the load is below 0.8 of the set point. */
#define ROOM (ONE / 5)
#define NS_PER_US 1000u

/* The loader fills them in (`stamp.py`). */
struct parameters {
	/* Of the host's own link, and the least, bit/s. */
	u64 line_rate, min_rate;
	/* Nanoseconds; `rtt` is 0 if it is measured. */
	u64 base_rtt, rtt;
	/* Bytes. */
	u64 young;
	u32 eta, free_queue, search, gain, step, least_step, theta;
	/* Bytes of a full packet besides its payload; packets. */
	u32 overhead, min_cwnd;
	struct field stamp;
	u32 utilisation;
};

/* Of a flow. */
struct law {
	u64 reference, rate;
	/* Of the stamps since the reference moved. */
	s64 sum;
	/* Bytes acknowledged since the start. */
	u64 acked;
	u32 count;
	u8 seen, idle;
	/* The additive step has shrunk to its least part. */
	u8 old;
};

ALWAYS_INLINE s64 quotient(s64 dividend, u32 divisor)
{
	return dividend < 0 ? -(s64)((u64)-dividend / divisor) : (s64)((u64)dividend / divisor);
}

/* Share of the additive step that is left to a flow of its age: the root of young / (young + acked). */
ALWAYS_INLINE u32 age_of(const struct parameters *p, struct law *l)
{
	u32 age;

	if (l->old)
		return p->least_step;
	if (!l->acked)
		return ONE;
	age = root((p->young << 32) / (p->young + l->acked)) << (POINT - 16);
	l->old = age <= p->least_step;
	return larger(age, p->least_step);
}

ALWAYS_INLINE u64 limited_rate(const struct parameters *p, u64 rate)
{
	u64 least = p->min_rate < p->line_rate ? p->min_rate : p->line_rate;

	rate = rate < p->line_rate ? rate : p->line_rate;
	return rate > least ? rate : least;
}

/* A stamp has come; `commit`: the reference moves. */
ALWAYS_INLINE void update(const struct parameters *p, struct law *l, u64 stamp, u8 commit, u64 rtt)
{
	s64 load = p->utilisation ? (s64)stamp : ONE + (s64)stamp - p->free_queue, error, divisor;
	u64 slow = rtt > p->base_rtt ? (p->base_rtt << POINT) / rtt : ONE, step;

	l->sum += load;
	l->count++;
	l->seen |= stamp > 0;
	if (commit) {
		load = quotient(l->sum, l->count);
		if (!p->utilisation) {
			if (l->seen) {
				l->idle = 0;
			} else {
				/* No queue in all of a round trip: there is room, and the longer it is so the more. */
				u64 room = (u64)p->search << (l->idle & 31);

				room = room > p->free_queue ? room : p->free_queue;
				load = ONE - (room < ONE / 2 ? room : ONE / 2);
				if (l->idle < 16)
					l->idle++;
			}
			l->seen = 0;
		}
	}
	step = (p->line_rate * p->step) >> POINT;
	step = (step * slow) >> POINT;
	step = (step * age_of(p, l)) >> POINT;
	if (load > p->eta) {
		u64 shut = ((u64)(load - p->eta) << POINT) / p->theta;

		step = (step * (shut < ONE - LEAST_GATE ? ONE - shut : LEAST_GATE)) >> POINT;
	}
	error = quotient(load * ONE, p->eta) - ONE;
	if (error <= -ROOM)
		slow = ONE;
	divisor = ONE + ((s64)((p->gain * slow) >> POINT) * error >> POINT);
	if (divisor < 1)
		divisor = 1;
	l->rate = limited_rate(p, (l->reference << POINT) / (u64)divisor + step);
	if (commit) {
		l->reference = l->rate;
		l->sum = 0;
		l->count = 0;
	}
}

/* The window in packets of so many bytes of payload; the last packet may reach beyond it. */
ALWAYS_INLINE u32 packets_of(const struct parameters *p, u64 window, u32 payload)
{
	u32 packet = payload + p->overhead;
	u64 packets = (window + packet - 1) / packet;

	return larger(packets < 0x7fffffff ? packets : 0x7fffffff, p->min_cwnd);
}

/* Bytes of payload in a second. */
ALWAYS_INLINE u64 payload_rate(const struct parameters *p, u64 rate, u32 payload)
{
	return (limited_rate(p, rate) >> 3) * payload / (payload + p->overhead);
}

/* A packet in each round trip, bit/s. */
ALWAYS_INLINE u64 a_packet(u32 payload, u64 rtt)
{
	return payload * 8ull * NS_PER_S / rtt;
}

/* After a loss, at most once in a round trip. `out`: packets that were in the network, which the receiver's window or the sender's data may
 * have limited. */
ALWAYS_INLINE void halve(struct law *l, u32 out, u32 payload, u64 rtt)
{
	u64 packet = a_packet(payload, rtt), most = out * packet;

	l->reference = (l->reference < most ? l->reference : most) / 2;
	l->reference = l->reference > packet ? l->reference : packet;
	l->rate = l->rate < l->reference ? l->rate : l->reference;
}

/* A round trip without a stamp: a packet more in each, as Reno. */
ALWAYS_INLINE void grow(const struct parameters *p, struct law *l, u32 payload, u64 rtt)
{
	u64 more = l->reference + a_packet(payload, rtt);

	l->reference = l->rate = more < p->line_rate ? more : p->line_rate;
}
