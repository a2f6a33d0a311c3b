/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The control `stamp` as a BPF congestion control: a window and a rate from one field that switches stamp, as the simulator has it
 * (crates/transport/src/cc/stamp.rs). `stamp_law.h` is its arithmetic. The field comes in an option that a `Signal` shim hands over
 * (signal.h).
 *
 * Where nothing is stamped for a whole round trip, the rate grows by a packet in each, and losses halve it: Reno, from where the stamps
 * left it. A flow that never gets a stamp starts at `line_rate`.
 *
 * Known deviations from the simulator's: of stamps that come while TCP is busy with an earlier ACK, the last one counts. Bursts are as
 * long as the kernel makes them (tcp_tso_autosize), where the simulator sends single packets.
 */
#include "signalled_stamp.h"
#include "stamp_law.h"

struct state {
	struct law law;
	/* Signals that have been read. */
	u32 told;
	/* The reference moves when this is acknowledged. */
	u32 commit_at;
	u32 cut_at;
	/* A stamp should have come when this is acknowledged. */
	u32 quiet_until;
	u8 started, updated, cut;
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

/* Round trip without queues. Before there is a measured one it is that of the simulator's. */
ALWAYS_INLINE u64 rtt_of(const struct parameters *p, struct tcp_sock *tp)
{
	u32 least = tp->rtt_min.s[0].v;
	u64 rtt = p->rtt;

	if (!rtt)
		rtt = least == ~0u ? 10000 : (u64)least * NS_PER_US;
	if (rtt > NS_PER_S)
		return NS_PER_S;
	return rtt ? rtt : 1;
}

ALWAYS_INLINE int is_after(u32 seq, u32 other)
{
	return (s32)(seq - other) > 0;
}

/* Sets window and pacing. After a timeout the window starts slowly (RFC 5681 section 3.1). */
ALWAYS_INLINE void set(const struct parameters *p, struct sock *sk, struct state *s, u64 rtt, u32 delivered)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 payload = larger(tp->mss_cache, 1), cwnd = packets_of(p, bytes_of(s->law.rate, rtt), payload);
	u64 rate = payload_rate(p, s->law.rate, payload);

	if (BITS((struct inet_connection_sock *)sk, icsk_ca_state) == LOSS)
		cwnd = smaller(cwnd, tp->snd_cwnd + delivered);
	tp->snd_cwnd = smaller(cwnd, tp->snd_cwnd_clamp);
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
	sk->sk_pacing_status = PACING_NEEDED;
}

ALWAYS_INLINE void start(const struct parameters *p, struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 rtt = rtt_of(p, tp);

	*s = (struct state){
		.law = {.reference = p->line_rate, .rate = p->line_rate},
		.quiet_until = tp->snd_nxt + (u32)bytes_of(p->line_rate, rtt),
		.started = 1,
	};
	set(p, sk, s, rtt, 0);
}

ALWAYS_INLINE void react_to_loss(const struct parameters *p, struct tcp_sock *tp, struct state *s)
{
	if (s->cut && is_after(s->cut_at, tp->snd_una))
		return;
	s->cut = 1;
	s->cut_at = tp->snd_nxt;
	halve(&s->law, tp->packets_out, larger(tp->mss_cache, 1), rtt_of(p, tp));
}

SECTION("struct_ops/stamp_init") void stamp_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct parameters *p = parameters();

	if (p)
		start(p, sk, state_of(sk));
}

SECTION("struct_ops/stamp_ssthresh") u32 stamp_ssthresh(u64 *arguments)
{
	/* It does not matter: the window is set with each ACK. */
	return ((struct tcp_sock *)arguments[0])->snd_ssthresh;
}

SECTION("struct_ops/stamp_cong_control") void stamp_cong_control(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct rate_sample *sample = (struct rate_sample *)arguments[3];
	struct state *s = state_of(sk);
	struct parameters *p = parameters();
	u32 payload = larger(tp->mss_cache, 1), delivered = sample->acked_sacked, una = tp->snd_una;
	u8 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);
	u64 rtt;
	s64 stamp;

	if (!p)
		return;
	/* The kernel now and then leaves a function out: see dctcp.c. */
	if (!s->started)
		start(p, sk, s);
	if (state >= RECOVERY && state != s->losses)
		react_to_loss(p, tp, s);
	s->losses = state;
	rtt = rtt_of(p, tp);
	s->law.acked += (u64)delivered * payload;
	stamp = taken(&p->stamp, sk, &s->told);
	if (stamp >= 0) {
		u8 commit = s->updated && is_after(una, s->commit_at);

		update(p, &s->law, stamp, commit, rtt);
		if (commit || !s->updated)
			s->commit_at = tp->snd_nxt;
		s->updated = 1;
		s->quiet_until = tp->snd_nxt;
	} else if (is_after(una, s->quiet_until)) {
		s->quiet_until = tp->snd_nxt;
		if (state < RECOVERY)
			grow(p, &s->law, payload, rtt);
	}
	set(p, sk, s, rtt, delivered);
}

SECTION("struct_ops/stamp_set_state") void stamp_set_state(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct state *s = state_of(sk);
	struct parameters *p = parameters();

	if (!p || !s->started)
		return;
	s->losses = arguments[1];
	if (s->losses >= RECOVERY)
		react_to_loss(p, (struct tcp_sock *)sk, s);
}

SECTION("struct_ops/stamp_undo_cwnd") u32 stamp_undo_cwnd(u64 *arguments)
{
	return ((struct tcp_sock *)arguments[0])->snd_cwnd;
}

SECTION("struct_ops/stamp_min_tso_segs") u32 stamp_min_tso_segs(u64 *arguments)
{
	return 1;
}

SECTION(".struct_ops") struct tcp_congestion_ops stamp = {
	.init = (void *)stamp_init,
	.ssthresh = (void *)stamp_ssthresh,
	.cong_control = (void *)stamp_cong_control,
	.set_state = (void *)stamp_set_state,
	.undo_cwnd = (void *)stamp_undo_cwnd,
	.min_tso_segs = (void *)stamp_min_tso_segs,
	/* The loader puts another in its place. */
	.name = "stamp_XXXXXX",
};

char terms[] SECTION("license") = "GPL";
