/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The control `timely` as a BPF congestion control: TIMELY, and the forms of it that follow what switches stamp, with the options of
 * the simulated one (crates/transport/src/cc/timely.rs). `timely_law.h` is its arithmetic. A stamp comes in an option that a `Signal` shim
 * hands over (signal.h).
 *
 * Known deviations from the simulator's: round trips are measured in microseconds. Of stamps that come while TCP is busy with an earlier
 * ACK, the last one counts. Bursts are as long as the kernel makes them (tcp_tso_autosize).
 */
#include "signalled_stamp.h"
#include "timely_law.h"

struct state {
	struct law law;
	/* Of the last event, and of the last round trip that was measured: nanoseconds. */
	u64 last_event, last_rtt;
	/* Since the last event: bytes acknowledged, the least round trip, the least signal. */
	u64 acked, segment_rtt, segment_signal;
	/* Signals that have been read. */
	u32 told;
	u8 started, has_rtt, has_signal;
	/* The last state of losses that was seen. */
	u8 losses;
};

_Static_assert(sizeof(struct state) <= sizeof(u64[13]), "more than a congestion control may keep");

struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct parameters);
} given SECTION(".maps");

ALWAYS_INLINE struct state *state_of(struct sock *sk)
{
	return (struct state *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

ALWAYS_INLINE struct parameters *parameters(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&given, &first);
}

ALWAYS_INLINE u64 at_most_a_second(u64 time)
{
	return time < MOST_TIME ? time : MOST_TIME;
}

/* The least round trip, in nanoseconds; before there is one, 1 ms. */
ALWAYS_INLINE u64 least_of(struct tcp_sock *tp)
{
	u32 least = tp->rtt_min.s[0].v;

	return least == ~0u ? 1000000 : at_most_a_second((u64)least * 1000);
}

ALWAYS_INLINE u64 smoothed_of(struct tcp_sock *tp)
{
	u64 srtt = (u64)(tp->srtt_us >> 3) * 1000;

	return srtt ? at_most_a_second(srtt) : 1000000;
}

/* Sets the window, and where packets are paced the rate. After a timeout the window starts slowly (RFC 5681 section 3.1). */
ALWAYS_INLINE void set(const struct parameters *p, struct sock *sk, struct state *s, u32 delivered)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 payload = larger(tp->mss_cache, 1), cwnd;
	u64 rate = s->law.rate >> 3;

	if (p->windowed) {
		cwnd = window_of(s->law.rate, s->last_rtt ? s->last_rtt : smoothed_of(tp), payload);
	} else {
		cwnd = wide_window(s->law.rate, smoothed_of(tp), payload);
		sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
		sk->sk_pacing_status = PACING_NEEDED;
	}
	if (BITS((struct inet_connection_sock *)sk, icsk_ca_state) == LOSS)
		cwnd = smaller(cwnd, tp->snd_cwnd + delivered);
	tp->snd_cwnd = smaller(cwnd, tp->snd_cwnd_clamp);
}

ALWAYS_INLINE void start(const struct parameters *p, struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 bytes = (u64)smaller(tp->snd_cwnd, 1 << 16) * smaller(tp->mss_cache, 1 << 16);
	u64 rate = p->start_rate ? p->start_rate : bytes * 8000 / (smoothed_of(tp) / 1000 + 1) * 1000;

	*s = (struct state){.last_event = bpf_ktime_get_ns(), .started = 1};
	rate = rate > p->min_rate ? rate : p->min_rate;
	s->law.rate = rate < p->max_rate ? rate : p->max_rate;
	set(p, sk, s, 0);
}

ALWAYS_INLINE void react_to_timeout(const struct parameters *p, struct state *s)
{
	u64 half = s->law.rate / 2;

	s->law.rate = half > p->min_rate ? half : p->min_rate;
}

/* The round trip of an ACK and its signal, for the next event. */
ALWAYS_INLINE void note(const struct parameters *p, struct sock *sk, struct state *s, u64 rtt)
{
	s64 signal = rtt;

	s->last_rtt = rtt;
	if (!s->has_rtt || rtt < s->segment_rtt)
		s->segment_rtt = rtt;
	s->has_rtt = 1;
	if (p->source == STAMP)
		signal = taken(&p->stamp, sk, &s->told);
	else if (p->source == RTT_LESS_HOPS)
		signal = rtt > p->hop_delay ? rtt - p->hop_delay : 0;
	if (signal < 0)
		return;
	if (!s->has_signal || (u64)signal < s->segment_signal)
		s->segment_signal = signal;
	s->has_signal = 1;
}

SECTION("struct_ops/timely_init") void timely_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct parameters *p = parameters();

	if (p)
		start(p, sk, state_of(sk));
}

SECTION("struct_ops/timely_ssthresh") u32 timely_ssthresh(u64 *arguments)
{
	/* It does not matter: the window is set with each ACK. */
	return ((struct tcp_sock *)arguments[0])->snd_ssthresh;
}

SECTION("struct_ops/timely_cong_control") void timely_cong_control(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct rate_sample *sample = (struct rate_sample *)arguments[3];
	struct state *s = state_of(sk);
	struct parameters *p = parameters();
	u32 delivered = sample->acked_sacked;
	long rtt_us = sample->rtt_us;
	u64 now = bpf_ktime_get_ns(), least, since;
	u8 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	if (!p)
		return;
	/* The kernel now and then leaves a function out: see dctcp.c. */
	if (!s->started)
		start(p, sk, s);
	if (state == LOSS && s->losses != LOSS)
		react_to_timeout(p, s);
	s->losses = state;
	s->acked += (u64)delivered * tp->mss_cache;
	if (rtt_us > 0)
		note(p, sk, s, at_most_a_second((u64)rtt_us * 1000));
	least = least_of(tp);
	since = now - s->last_event;
	if (s->acked >= p->segment && (!p->segment || since >= least) && s->has_rtt && s->has_signal) {
		u64 signal = s->segment_signal, rtt = s->segment_rtt;

		s->has_rtt = s->has_signal = 0;
		s->acked = 0;
		s->last_event = now;
		update(p, &s->law, signal, rtt, at_most_a_second(since), least);
	}
	set(p, sk, s, delivered);
}

SECTION("struct_ops/timely_set_state") void timely_set_state(u64 *arguments)
{
	struct state *s = state_of((struct sock *)arguments[0]);
	struct parameters *p = parameters();

	if (!p || !s->started)
		return;
	if (arguments[1] == LOSS && s->losses != LOSS)
		react_to_timeout(p, s);
	s->losses = arguments[1];
}

SECTION("struct_ops/timely_undo_cwnd") u32 timely_undo_cwnd(u64 *arguments)
{
	return ((struct tcp_sock *)arguments[0])->snd_cwnd;
}

SECTION("struct_ops/timely_min_tso_segs") u32 timely_min_tso_segs(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct parameters *p = parameters();

	if (!p || !p->segment)
		return 1;
	return larger(SEGMENT / larger(tp->mss_cache, 1), 1);
}

SECTION(".struct_ops") struct tcp_congestion_ops timely = {
	.init = (void *)timely_init,
	.ssthresh = (void *)timely_ssthresh,
	.cong_control = (void *)timely_cong_control,
	.set_state = (void *)timely_set_state,
	.undo_cwnd = (void *)timely_undo_cwnd,
	.min_tso_segs = (void *)timely_min_tso_segs,
	/* The loader puts another in its place. */
	.name = "timely_XXXXXX",
};

char terms[] SECTION("license") = "GPL";
