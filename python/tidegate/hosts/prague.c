/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * Prague as a BPF congestion control: draft-briscoe-iccrg-prague-congestion-control-04, as the simulator has it
 * (crates/transport/src/cc/prague.rs), so that both can be compared.
 *
 * Needs accurate ECN. Its packets leave with ECT(1) if `ect1` is at the interface: the kernel itself sends ECT(0). Where the peer has no
 * accurate ECN it is Reno, with ECT(0).
 *
 * Known deviations: bursts take up to 1/1024 s at the pacing rate, where tcp_prague has 1/4096 s: the kernel sizes them, and lets a
 * congestion control only ask for more. Otherwise those of the simulator's.
 */
#include "kernel.h"

/* Windows and increases have 20 bits behind the point; alpha is a share of 2^20. */
#define WINDOW_BITS 20
#define ONE (1u << WINDOW_BITS)
#define MAX_ALPHA (1u << 20)
/* g = 1/16. */
#define SHIFT_G 4
#define MIN_CWND 2
/* Flows with shorter round trips behave as if they had this one, from the fourth round trip after slow start on. */
#define TARGET_US 25000
#define TARGET_NS (TARGET_US * 1000ull)
#define TRANSITION 4
#define MIN_BURST 2

struct prague {
	u64 alpha_stamp;
	u64 cwr_stamp;
	/* 16 times alpha, so that what is too small to be divided is not lost. */
	u32 upscaled_alpha;
	/* The window's part behind the point. */
	u32 fraction;
	/* Increase per window of unmarked packets. */
	u32 increase;
	u32 next_seq;
	/* At the start of the round. */
	u32 old_delivered;
	u32 old_delivered_ce;
	/* At the last ACK. */
	u32 seen_ce;
	u32 loss_cwnd;
	/* The kernel's is taken from here with each ACK: see dctcp.c. */
	u32 ssthresh;
	/* Round trips since the end of slow start. */
	u8 round;
	u8 saw_ce;
	/* Without accurate ECN. */
	u8 reno;
	u8 started;
	/* The last state of losses that was reacted to; whether there was an event of a loss for the next one. */
	u8 state;
	u8 told;
};

_Static_assert(sizeof(struct prague) <= sizeof(u64[13]), "more than a congestion control may keep");

/* Which sockets send ECT(1). */
struct {
	UINT(type, SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, s32);
	TYPE(value, u32);
} l4s_sockets SECTION(".maps");

ALWAYS_INLINE int in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether it is the window that holds sending back. */
ALWAYS_INLINE int cwnd_limited(struct tcp_sock *tp)
{
	if (BITS(tp, is_cwnd_limited))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

ALWAYS_INLINE u64 window_of(struct tcp_sock *tp, struct prague *p)
{
	return ((u64)tp->snd_cwnd << WINDOW_BITS) + p->fraction;
}

ALWAYS_INLINE void set_window(struct tcp_sock *tp, struct prague *p, u64 window)
{
	u32 cwnd = smaller(window >> WINDOW_BITS, tp->snd_cwnd_clamp);

	p->fraction = window & (ONE - 1);
	if (cwnd < MIN_CWND) {
		cwnd = MIN_CWND;
		p->fraction = 0;
	}
	tp->snd_cwnd = cwnd;
}

/* One packet per round trip or, for shorter round trips, such that the rate grows as if it were the target: the increase is smaller by
 * the ratio of round trips, and comes more often by it as well. */
ALWAYS_INLINE void set_increase(struct tcp_sock *tp, struct prague *p)
{
	u64 rtt = tp->srtt_us >> 3, square = (u64)TARGET_US * TARGET_US;

	p->increase = ONE;
	if (p->round >= TRANSITION && !p->reno && rtt > 0 && rtt < TARGET_US)
		p->increase = (((rtt * rtt) << WINDOW_BITS) + square / 2) / square;
}

ALWAYS_INLINE void new_round(struct tcp_sock *tp, struct prague *p)
{
	p->next_seq = tp->snd_nxt;
	p->old_delivered = tp->delivered;
	p->old_delivered_ce = tp->delivered_ce;
	if (!in_slow_start(tp) && p->round < TRANSITION)
		p->round += 1;
	set_increase(tp, p);
}

/* Once per virtual round trip: alpha = (1 - g) alpha + g F. */
ALWAYS_INLINE void update_alpha(struct tcp_sock *tp, struct prague *p)
{
	u64 now = bpf_ktime_get_ns();

	if ((s32)(tp->snd_una - p->next_seq) < 0 || (p->round >= TRANSITION && now - p->alpha_stamp < TARGET_NS))
		return;
	/* Before the first mark nothing is known of the path: the first response is strong. */
	if (p->saw_ce && !p->reno) {
		u64 marked = tp->delivered_ce - p->old_delivered_ce;
		u32 share = marked * MAX_ALPHA / larger(tp->delivered - p->old_delivered, 1);

		p->upscaled_alpha =
			smaller(p->upscaled_alpha - (p->upscaled_alpha >> SHIFT_G) + share, MAX_ALPHA << SHIFT_G);
		p->alpha_stamp = now;
	}
	new_round(tp, p);
}

/* Packets without a mark make the window grow, marked ones do not. */
ALWAYS_INLINE void grow(struct tcp_sock *tp, struct prague *p, u32 acked, u32 marked)
{
	u32 cwnd;

	if (acked <= marked || p->state == RECOVERY || !cwnd_limited(tp))
		return;
	acked -= marked;
	if (in_slow_start(tp)) {
		cwnd = smaller(tp->snd_cwnd + acked, tp->snd_ssthresh);
		acked -= cwnd - tp->snd_cwnd;
		tp->snd_cwnd = smaller(cwnd, tp->snd_cwnd_clamp);
		if (acked == 0)
			return;
	}
	cwnd = larger(tp->snd_cwnd, 1);
	set_window(tp, p, window_of(tp, p) + ((u64)acked * p->increase + cwnd / 2) / cwnd);
}

ALWAYS_INLINE void reduce(struct tcp_sock *tp, struct prague *p, u32 alpha)
{
	u64 window = window_of(tp, p);
	/* Ten bits less on the way, so that no window is too large for 64. */
	u64 cut = ((window >> 10) * alpha + (MAX_ALPHA >> 10)) >> 11;

	set_window(tp, p, cut < window ? window - cut : 0);
	tp->snd_ssthresh = p->ssthresh = tp->snd_cwnd;
}

ALWAYS_INLINE void react_to_loss(struct tcp_sock *tp, struct prague *p)
{
	p->loss_cwnd = tp->snd_cwnd;
	reduce(tp, p, MAX_ALPHA);
}

/* 3 % more than the window per round trip, so that it is the window that limits what is in flight; twice that in slow start, where two
 * packets answer each. */
ALWAYS_INLINE void pace(struct sock *sk, struct tcp_sock *tp)
{
	u32 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 206 : 103;

	set_pacing_rate(sk, tp, larger(tp->snd_cwnd, in_flight(tp)), percent);
}

ALWAYS_INLINE void start(struct sock *sk, struct prague *p)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 yes = 1;

	*p = (struct prague){
		.started = 1,
		.state = BITS((struct inet_connection_sock *)sk, icsk_ca_state),
		.reno = !(tp->ecn_flags & ECN_MODE_ACCURATE),
		.upscaled_alpha = MAX_ALPHA << SHIFT_G,
		.alpha_stamp = bpf_ktime_get_ns(),
		.seen_ce = tp->delivered_ce,
		.ssthresh = tp->snd_ssthresh ? tp->snd_ssthresh : ~0u >> 1,
	};
	if (!p->reno)
		bpf_sk_storage_get(&l4s_sockets, sk, &yes, GET_OR_CREATE);
	new_round(tp, p);
	sk->sk_pacing_status = PACING_NEEDED;
	pace(sk, tp);
}

/* The kernel now and then leaves a function out (see dctcp.c), this one's `init` too. */
ALWAYS_INLINE struct prague *state_of(struct sock *sk)
{
	struct prague *p = (struct prague *)((struct inet_connection_sock *)sk)->icsk_ca_priv;

	if (!p->started)
		start(sk, p);
	return p;
}

/* A connection is in another state: `set_state` has said so, or where it was left out, the next ACK shows it. */
ALWAYS_INLINE void enter(struct tcp_sock *tp, struct prague *p, u8 state)
{
	u8 before = p->state;
	u64 now;

	p->state = state;
	if (state == RECOVERY) {
		react_to_loss(tp, p);
	} else if (state == LOSS) {
		if (!p->told && before <= DISORDER) {
			/* The kernel has set the window already. */
			p->loss_cwnd = tp->prior_cwnd;
			tp->snd_ssthresh = p->ssthresh = larger(tp->prior_cwnd / 2, MIN_CWND);
		}
		p->told = 0;
	} else if (state == CWR) {
		/* Marks: at most once per virtual round trip. */
		now = bpf_ktime_get_ns();
		if (p->round >= TRANSITION && !p->reno && p->cwr_stamp && now - p->cwr_stamp < TARGET_NS)
			return;
		p->cwr_stamp = now;
		reduce(tp, p, p->reno ? MAX_ALPHA : p->upscaled_alpha >> SHIFT_G);
	}
}

SECTION("struct_ops/prague_init") void prague_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	start(sk, (struct prague *)((struct inet_connection_sock *)sk)->icsk_ca_priv);
}

SECTION("struct_ops/prague_ssthresh") u32 prague_ssthresh(u64 *arguments)
{
	/* Set when the window is. */
	return state_of((struct sock *)arguments[0])->ssthresh;
}

SECTION("struct_ops/prague_cong_control") void prague_cong_control(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct rate_sample *sample = (struct rate_sample *)arguments[3];
	struct prague *p = state_of(sk);
	u32 marked = tp->delivered_ce - p->seen_ce;
	u8 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	if (state != p->state)
		enter(tp, p, state);
	tp->snd_ssthresh = p->ssthresh;
	p->seen_ce = tp->delivered_ce;
	if (marked)
		p->saw_ce = 1;
	grow(tp, p, sample->acked_sacked, p->reno ? 0 : marked);
	update_alpha(tp, p);
	pace(sk, tp);
}

SECTION("struct_ops/prague_set_state") void prague_set_state(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct prague *p = state_of(sk);
	u8 state = arguments[1];

	if (state != BITS((struct inet_connection_sock *)sk, icsk_ca_state))
		enter(tp, p, state);
}

SECTION("struct_ops/prague_cwnd_event") void prague_cwnd_event(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct prague *p = state_of(sk);

	if ((u32)arguments[1] == EVENT_LOSS) {
		react_to_loss(tp, p);
		p->told = 1;
	} else if ((u32)arguments[1] == EVENT_RESTART) {
		p->ssthresh = after_idle(tp, p->ssthresh);
	}
}

SECTION("struct_ops/prague_undo_cwnd") u32 prague_undo_cwnd(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct prague *p = state_of((struct sock *)tp);

	p->ssthresh = larger(p->ssthresh, tp->prior_ssthresh);
	return larger(tp->snd_cwnd, p->loss_cwnd);
}

SECTION("struct_ops/prague_min_tso_segs") u32 prague_min_tso_segs(u64 *arguments)
{
	return MIN_BURST;
}

SECTION(".struct_ops") struct tcp_congestion_ops prague = {
	.init = (void *)prague_init,
	.ssthresh = (void *)prague_ssthresh,
	.cong_control = (void *)prague_cong_control,
	.set_state = (void *)prague_set_state,
	.cwnd_event = (void *)prague_cwnd_event,
	.undo_cwnd = (void *)prague_undo_cwnd,
	.min_tso_segs = (void *)prague_min_tso_segs,
	.flags = NEEDS_ACCURATE_ECN,
	/* The loader puts another in its place. */
	.name = "prague_XXXXXX",
};

/* At the egress of an interface: what Prague's sockets send as ECT(0) leaves as ECT(1). */
SECTION("tc") int ect1(struct packet *packet)
{
	u8 *begin = (u8 *)(u64)packet->data, *end = (u8 *)(u64)packet->data_end;
	void *sk = packet->sk;
	u8 before[2], after[2];

	if (!sk || begin + ETHERNET + IPV4 > end || begin[12] != 0x08 || begin[13] != 0 || begin[ETHERNET] >> 4 != 4)
		return 0;
	/* The checksum goes by words: version and length stand before the field. */
	before[0] = after[0] = begin[ETHERNET];
	before[1] = begin[ETHERNET + 1];
	if ((before[1] & 3) != ECT0)
		return 0;
	sk = bpf_sk_fullsock(sk);
	if (!sk || !bpf_sk_storage_get(&l4s_sockets, sk, 0, 0))
		return 0;
	after[1] = (before[1] & ~3) | ECT1;
	bpf_l3_csum_replace(packet, ETHERNET + 10, *(u16 *)before, *(u16 *)after, sizeof(after));
	bpf_skb_store_bytes(packet, ETHERNET + 1, &after[1], 1, 0);
	return 0;
}

char terms[] SECTION("license") = "GPL";
