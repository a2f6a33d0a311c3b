/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * DCTCP as a BPF congestion control: RFC 8257, in the fixed point of Linux's own, as the simulator has it
 * (crates/transport/src/cc/dctcp.rs). Both ends need it: the receiver's part, ACKs that say exactly which packets came with CE (section 3.2),
 * is here as well. Its packets are ECT(0).
 *
 * It sets its window itself, as the kernel does for others: by Reno's increase and proportional rate reduction (RFC 6937). Linux calls a BPF
 * congestion control's functions through a trampoline, which now and then leaves one out; what it takes for the result is then a word of
 * its stack (seen with Linux 6.18: several times a minute on a busy machine, ssthresh 0x81104110). With the kernel's own rate reduction one
 * such ssthresh opens the window without limit. So ssthresh is kept here, and the kernel's copy is set with each ACK.
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
	u32 ssthresh;
	/* Packets delivered in the reduction that ends where high_seq says. */
	u32 prr_delivered;
	u32 until;
	/* As a receiver: up to where packets had come before the last one, and whether that came with CE. */
	u32 prior_rcv_nxt;
	u8 ce;
	/* Without ECN. */
	u8 reno;
	/* In CWR or in recovery. */
	u8 reduces;
	u8 started;
	/* The last state of losses that was reacted to; whether there was an event of a loss for the next one. */
	u8 state;
	u8 told;
};

_Static_assert(sizeof(struct dctcp) <= sizeof(u64[13]), "more than a congestion control may keep");

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
	tp->snd_ssthresh = d->ssthresh = larger(tp->snd_cwnd / 2, MIN_CWND);
}

ALWAYS_INLINE void start(struct sock *sk, struct dctcp *d)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	*d = (struct dctcp){
		.started = 1,
		.state = BITS((struct inet_connection_sock *)sk, icsk_ca_state),
		.reno = !(tp->ecn_flags & ECN_MODE_RFC3168),
		.alpha = MAX_ALPHA,
		.ssthresh = tp->snd_ssthresh ? tp->snd_ssthresh : ~0u >> 1,
		.prior_rcv_nxt = tp->rcv_nxt,
	};
	new_window(tp, d);
}

/* `init`, too, may have been left out. */
ALWAYS_INLINE struct dctcp *state_of(struct sock *sk)
{
	struct dctcp *d = (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;

	if (!d->started)
		start(sk, d);
	return d;
}

/* A connection is in another state: `set_state` has said so, or where it was left out, the next ACK shows it. */
ALWAYS_INLINE void enter(struct tcp_sock *tp, struct dctcp *d, u8 state)
{
	u8 before = d->state;

	d->state = state;
	if (state == RECOVERY) {
		react_to_loss(tp, d);
	} else if (state == LOSS) {
		if (!d->told && before <= DISORDER) {
			/* The kernel has set the window already. */
			d->loss_cwnd = tp->prior_cwnd;
			tp->snd_ssthresh = d->ssthresh = larger(tp->prior_cwnd / 2, MIN_CWND);
		}
		d->told = 0;
	}
}

SECTION("struct_ops/dctcp_init") void dctcp_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];

	start(sk, (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv);
}

/* A reduction of the window begins: to cwnd * (1 - alpha / 2), section 3.3. */
ALWAYS_INLINE void begin(struct tcp_sock *tp, struct dctcp *d, u32 cwnd)
{
	u32 cut = d->reno ? cwnd / 2 : (u32)(((u64)cwnd * d->alpha) >> (ALPHA_BITS + 1));

	d->loss_cwnd = cwnd;
	d->ssthresh = larger(cwnd - cut, MIN_CWND);
	d->prr_delivered = 0;
	d->until = tp->high_seq;
}

SECTION("struct_ops/dctcp_ssthresh") u32 dctcp_ssthresh(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct dctcp *d = state_of((struct sock *)tp);

	begin(tp, d, tp->snd_cwnd);
	return d->ssthresh;
}

ALWAYS_INLINE u8 in_reduction(u8 state)
{
	return state == CWR || state == RECOVERY;
}

/* Proportional rate reduction (RFC 6937; tcp_cwnd_reduction in Linux). */
ALWAYS_INLINE void reduce(struct tcp_sock *tp, struct dctcp *d, u32 delivered, int losses, u32 flag)
{
	u32 flying = in_flight(tp);
	s64 send;

	if (!delivered)
		return;
	d->prr_delivered += delivered;
	if (flying > d->ssthresh) {
		u64 dividend = (u64)d->ssthresh * d->prr_delivered + tp->prior_cwnd - 1;

		send = (s64)(dividend / larger(tp->prior_cwnd, 1)) - tp->prr_out;
	} else {
		send = (s64)d->prr_delivered - tp->prr_out;
		if (send < delivered)
			send = delivered;
		if ((flag & ACKED_NEW) && !losses)
			send++;
		if (send > d->ssthresh - flying)
			send = d->ssthresh - flying;
	}
	/* The first is a retransmission. */
	if (send < !tp->prr_out)
		send = !tp->prr_out;
	tp->snd_cwnd = flying + (u32)send;
}

SECTION("struct_ops/dctcp_cong_control") void dctcp_cong_control(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct rate_sample *sample = (struct rate_sample *)arguments[3];
	struct dctcp *d = state_of(sk);
	u32 flag = arguments[2];
	u8 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	d->reduces = in_reduction(state);
	if (d->reduces && d->until != tp->high_seq)
		/* Its beginning was left out. */
		begin(tp, d, tp->prior_cwnd);
	if (state != d->state)
		enter(tp, d, state);
	tp->snd_ssthresh = d->ssthresh;
	if (d->reduces)
		reduce(tp, d, sample->acked_sacked, sample->losses, flag);
	else if (flag & ACKED_DATA)
		tcp_reno_cong_avoid(sk, arguments[1], sample->acked_sacked);
	set_pacing_rate(sk, tp, larger(tp->snd_cwnd, tp->packets_out), tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120);
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
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *d = state_of(sk);
	u8 before = BITS((struct inet_connection_sock *)sk, icsk_ca_state), state = arguments[1];

	if (state == before)
		return;
	enter(tp, d, state);
	if (state == OPEN && d->reduces && d->until == tp->high_seq)
		tp->snd_cwnd = d->ssthresh;
	d->reduces = in_reduction(state);
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

	if (event == EVENT_LOSS) {
		react_to_loss(tp, d);
		d->told = 1;
	} else if (event == EVENT_RESTART && !d->reduces) {
		d->ssthresh = after_idle(tp, d->ssthresh);
	}
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
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct dctcp *d = state_of((struct sock *)tp);

	d->ssthresh = larger(d->ssthresh, tp->prior_ssthresh);
	d->reduces = 0;
	return larger(tp->snd_cwnd, d->loss_cwnd);
}

SECTION(".struct_ops") struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_control = (void *)dctcp_cong_control,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = NEEDS_ECN,
	/* The loader puts another in its place. */
	.name = "dctcp_XXXXXX",
};

char terms[] SECTION("license") = "GPL";
