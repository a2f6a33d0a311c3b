/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The arithmetic of `timely.c`: the rate of the simulated control (crates/transport/src/cc/timely.rs) in whole numbers. Shares have 20
 * bits behind the point, differences of signals 8. Rates are bit/s up to 100 Gbit/s, times nanoseconds up to 1 s; with these no product
 * exceeds 64 bits. A signed division is made of unsigned ones, as BPF has no other.
 */
#pragma once
#include "stamp_field.h"

#define POINT 20
#define ONE (1 << POINT)
#define DIFF_POINT 8
#define MOST_TIME 1000000000ull
/* Hyperactive increase: increments of such a step. */
#define HAI_STEPS 5
/* A million times T_low. */
#define MOST_OVER ((u64)ONE << 20)
#define SEGMENT 16384
/* Of IPv4, and of TCP without options. */
#define HEADERS 40

enum source { RTT, RTT_LESS_HOPS, STAMP };

/* The loader fills them in (`timely.py`). */
struct parameters {
	/* Bit/s; `start_rate` is 0 for the first window in a round trip. */
	u64 delta, start_rate, min_rate, max_rate;
	/* Nanoseconds; `min_rtt` is 0 if it is measured. */
	u64 t_low, t_high, min_rtt, hop_delay;
	u32 alpha, beta, most_cut, hai;
	/* Bytes of a segment; 0: each ACK is an event. */
	u32 segment;
	struct field stamp;
	u8 source, thresholds_on_signal, thresholds_of_path, raw_falls, patched, scaled, windowed, unused;
};

/* Of a flow. */
struct law {
	u64 rate;
	/* Filtered difference of two signals. */
	s64 diff;
	/* The last event's signal. */
	u64 prev;
	/* Events in a row whose gradient was not positive. */
	u32 falling;
	u32 has_prev;
};

/* The share, of at most 1; times up to 2^38, as differences are. */
ALWAYS_INLINE u64 share_of(u64 part, u64 of)
{
	if (part >= of)
		return ONE;
	return (part << POINT) / of;
}

ALWAYS_INLINE u64 times(u64 value, u64 share)
{
	return (value * share) >> POINT;
}

/* Cuts the rate by beta times a share. */
ALWAYS_INLINE void decrease(const struct parameters *p, struct law *l, u64 share)
{
	u64 cut = times(times(l->rate, share), p->beta), most = times(l->rate, p->most_cut), rate;

	rate = l->rate - (cut < most ? cut : most);
	l->rate = rate > p->min_rate ? rate : p->min_rate;
}

/* Zhu et al., section 6: `weight` of the decrease, from 0 at a gradient of -1/4 to 1 at 1/4. */
ALWAYS_INLINE void patched_step(const struct parameters *p, struct law *l, u64 compared, u64 low, u64 min_rtt, u64 delta)
{
	u64 size = l->diff < 0 ? (u64)-l->diff : (u64)l->diff;
	u64 twice = share_of(size * 4, min_rtt << DIFF_POINT) / 2;
	u64 weight = l->diff < 0 ? ONE / 2 - twice : ONE / 2 + twice, over, cut, rate;

	/* How far the signal is above T_low, as its share. */
	over = ((compared - low) << POINT) / (low ? low : 1);
	cut = times(times(p->beta, weight), over < MOST_OVER ? over : MOST_OVER);
	if (cut > p->most_cut)
		cut = p->most_cut;
	rate = times(delta, ONE - weight) + times(l->rate, ONE - cut);
	l->rate = rate > p->min_rate ? rate : p->min_rate;
}

/* Algorithm 1, for a completion event: its signal and round trip, the time since the last one, and the least round trip. */
ALWAYS_INLINE void update(const struct parameters *p, struct law *l, u64 signal, u64 rtt, u64 since, u64 least)
{
	s64 new_diff = (s64)(signal - l->prev) * (1 << DIFF_POINT);
	s64 mixed = l->diff * (s64)(ONE - p->alpha) + new_diff * (s64)p->alpha;
	u64 compared = p->thresholds_on_signal ? signal : rtt, base, low, high, min_rtt, part, delta;
	u8 had = l->has_prev;

	l->prev = signal;
	l->has_prev = 1;
	if (!had)
		return;
	l->diff = mixed < 0 ? -((-mixed) >> POINT) : mixed >> POINT;
	if (p->raw_falls ? new_diff < 0 : l->diff <= 0)
		l->falling++;
	else
		l->falling = 0;
	base = p->thresholds_of_path && least > p->t_low ? least : 0;
	low = base + p->t_low;
	high = base + p->t_high;
	min_rtt = p->min_rtt ? p->min_rtt : least;
	if (!min_rtt)
		min_rtt = 1;
	/* The part of a least round trip that has gone by. */
	part = p->scaled ? share_of(since, min_rtt) : ONE;
	delta = times(p->delta, part);
	if (compared < low)
		l->rate += delta;
	else if (compared > high)
		decrease(p, l, times(share_of(compared - high, compared), part));
	else if (p->patched)
		patched_step(p, l, compared, low, min_rtt, delta);
	else if (l->diff <= 0)
		l->rate += (l->falling >= p->hai ? HAI_STEPS : 1) * delta;
	else
		decrease(p, l, share_of((u64)l->diff, min_rtt << DIFF_POINT));
	if (l->rate > p->max_rate)
		l->rate = p->max_rate;
}

/* The rate over the last round trip, headers counted, to the nearest packet. */
ALWAYS_INLINE u32 window_of(u64 rate, u64 rtt, u32 payload)
{
	u64 packet = payload + HEADERS, packets = (bytes_of(rate, rtt) + packet / 2) / packet;

	packets = packets < 0x7fffffff ? packets : 0x7fffffff;
	return larger(packets, 1);
}

/* Twice what the rate has out in a round trip, and two segments: out of the way of the pacing. */
ALWAYS_INLINE u32 wide_window(u64 rate, u64 rtt, u32 payload)
{
	u64 packets = 2 * (bytes_of(rate, rtt) + SEGMENT) / payload;

	packets = packets < 0x7fffffff ? packets : 0x7fffffff;
	return larger(packets, 10);
}
