/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * DCTCP as a BPF congestion control: RFC 8257, in the fixed point of Linux's own, as the simulator has it
 * (crates/transport/src/cc/dctcp.rs). Both ends need it: the receiver's part, ACKs that say exactly which packets came with CE (section 3.2),
 * is here as well. Its packets are ECT(0).
 *
 * Known deviations: those of the simulator's.
 */
#include "kernel.h"

/* A share of 1024. */
#define MAX_ALPHA 1024u
#define ALPHA_BITS 10
/* g = 1/16. */
#define SHIFT_G 4
#define MIN_CWND 2

struct dctcp {
	u32 alpha;
	/* At the start of the window of observation, and where it ends. */
	u32 old_delivered;
	u32 old_delivered_ce;
	u32 next_seq;
	u32 loss_cwnd;
	/* As a receiver: up to where packets had come before the last one, and whether that came with CE. */
	u32 prior_rcv_nxt;
	u8 ce;
	/* Without ECN. */
	u8 reno;
};

ALWAYS_INLINE struct dctcp *state_of(struct sock *sk)
{
	return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

ALWAYS_INLINE void new_window(struct tcp_sock *tp, struct dctcp *d)
{
	d->next_seq = tp->snd_nxt;
	d->old_delivered = tp->delivered;
	d->old_delivered_ce = tp->delivered_ce;
}

/* Of a loss alpha knows nothing: it halves (section 3.5). */
ALWAYS_INLINE void react_to_loss(struct tcp_sock *tp, struct dctcp *d)
{
	d->loss_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = larger(tp->snd_cwnd / 2, MIN_CWND);
}

SECTION("struct_ops/dctcp_init") void dctcp_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *d = state_of(sk);

	*d = (struct dctcp){
		.reno = !(tp->ecn_flags & ECN_MODE_RFC3168),
		.alpha = MAX_ALPHA,
		.prior_rcv_nxt = tp->rcv_nxt,
	};
	new_window(tp, d);
}

/* cwnd * (1 - alpha / 2), section 3.3. */
SECTION("struct_ops/dctcp_ssthresh") u32 dctcp_ssthresh(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct dctcp *d = state_of((struct sock *)tp);
	u32 cwnd = tp->snd_cwnd;

	d->loss_cwnd = cwnd;
	if (d->reno)
		return larger(cwnd / 2, MIN_CWND);
	return larger(cwnd - (u32)(((u64)cwnd * d->alpha) >> (ALPHA_BITS + 1)), MIN_CWND);
}

SECTION("struct_ops/dctcp_cong_avoid") void dctcp_cong_avoid(u64 *arguments)
{
	tcp_reno_cong_avoid((struct sock *)arguments[0], arguments[1], arguments[2]);
}

/* Once per window: alpha = (1 - g) alpha + g M, section 3.3. */
SECTION("struct_ops/dctcp_in_ack_event") void dctcp_in_ack_event(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct dctcp *d = state_of((struct sock *)tp);
	u32 marked = tp->delivered_ce - d->old_delivered_ce, part = d->alpha >> SHIFT_G;

	if ((s32)(tp->snd_una - d->next_seq) < 0)
		return;
	/* What is too small to be divided is forgotten at once. */
	d->alpha -= part ? part : d->alpha;
	if (marked)
		d->alpha = smaller(d->alpha + (u32)(((u64)marked << (ALPHA_BITS - SHIFT_G)) /
						    larger(tp->delivered - d->old_delivered, 1)),
				   MAX_ALPHA);
	new_window(tp, d);
}

SECTION("struct_ops/dctcp_set_state") void dctcp_set_state(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	if ((u8)arguments[1] == RECOVERY && BITS((struct inet_connection_sock *)sk, icsk_ca_state) != RECOVERY)
		react_to_loss((struct tcp_sock *)sk, state_of(sk));
}

ALWAYS_INLINE void echo(struct tcp_sock *tp, u8 ce)
{
	if (ce)
		tp->ecn_flags |= ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~ECN_DEMAND_CWR;
}

SECTION("struct_ops/dctcp_cwnd_event") void dctcp_cwnd_event(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *d = state_of(sk);
	u32 event = arguments[1];
	u8 ce = event == EVENT_IS_CE;

	if (event == EVENT_LOSS)
		react_to_loss(tp, d);
	if (event != EVENT_IS_CE && event != EVENT_NO_CE)
		return;
	if (d->ce != ce) {
		/* What came before is acknowledged on its own, with its own mark. */
		if (icsk->icsk_ack.pending & ACK_TIMER) {
			echo(tp, d->ce);
			bpf_tcp_send_ack(tp, d->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ACK_NOW;
	}
	d->prior_rcv_nxt = tp->rcv_nxt;
	d->ce = ce;
	echo(tp, ce);
}

SECTION("struct_ops/dctcp_undo_cwnd") u32 dctcp_undo_cwnd(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	return larger(((struct tcp_sock *)sk)->snd_cwnd, state_of(sk)->loss_cwnd);
}

SECTION(".struct_ops") struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = NEEDS_ECN,
	/* The loader puts another in its place. */
	.name = "dctcp_XXXXXX",
};

char terms[] SECTION("license") = "GPL";
