/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * Paces the flows of a real host as switches tell (README.md, "The option"). `pacer.py` loads it.
 *
 * - `sockets` finds the flows that are to be paced, and sets their rates each round trip: it stands at the cgroups that they are
 *   chosen by.
 * - `leaving` and `came` stand at interfaces. The first puts the option into SYNs, the second reads what switches say. It answers
 *   a notice with the notice's own packet, so that no process has to run for it.
 * - `visit` goes through the host's TCP sockets: it sets rates of those that have had no round trip since, and hands user space the
 *   packets that are to be sent beside those of TCP.
 *
 * All decisions are made here. User space gives the settings, and starts `visit` when told to and about once a second.
 */
#include "frames.h"
#include "shares.h"

#define SO_PRIORITY 12
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
/* What is heard of a socket: changes of its state, and each round trip. */
#define HEARD_OF (1 << 2 | 1 << 3)
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8
#define RECOMPUTE 1
#define ANY 0
#define SECOND 1000000000ull
/* Of measuring what an application takes, in nanoseconds. */
#define LOOK (SECOND / 5)
/* So long before what it leaves is given away. */
#define IDLE SECOND
/* In kbit/s. */
#define LEAST_LIMIT 16
/* Of the context: the kernel wants each field read where it is named. */
#define HERE(field) (*(volatile u32 *)&(field))
/* Options of a SYN-ACK that are read. */
#define TRACES 4
/* In place of a link: the application limits the flow. */
#define APPLICATION 255

ALWAYS_INLINE void count(u32 what)
{
	u64 *counter = bpf_map_lookup_elem(&counts, &what);

	if (counter)
		__sync_fetch_and_add(counter, 1);
}

ALWAYS_INLINE struct settings *set(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&settings, &first);
}

/* Have user space start `visit`, once. */
ALWAYS_INLINE void wake(void)
{
	u32 first = 0, *is = bpf_map_lookup_elem(&woken, &first);
	u64 *record;

	/* Twice does no harm. */
	if (!is || *(volatile u32 *)is)
		return;
	*(volatile u32 *)is = 1;
	record = bpf_ringbuf_reserve(&wakes, sizeof(*record), 0);
	if (!record)
		return;
	*record = bpf_ktime_get_ns();
	bpf_ringbuf_submit(record, 0);
}

/* Whether a flow is to be paced. */
ALWAYS_INLINE int chosen(const struct settings *s, const struct key *key, u8 direction)
{
	u32 port = direction == OPENED ? key->remote_port : key->local_port;
	struct prefix peer = {128, {key->remote[0], key->remote[1], key->remote[2], key->remote[3]}};

	if (!(s->directions & direction))
		return 0;
	if (!s->any_port && !bpf_map_lookup_elem(&ports, &port))
		return 0;
	return s->any_peer || bpf_map_lookup_elem(&peers, &peer);
}

/* A call, as a flow takes most of the stack that a program has. */
static __attribute__((noinline)) struct flow *begin(const struct settings *s, const struct key *key, u8 direction)
{
	struct flow fresh = {};

	fresh.weight = s->weight;
	fresh.direction = direction;
	fresh.state = ASKING;
	fresh.opened = bpf_ktime_get_ns();
	fresh.sorting = s->sorting;
	/* Without one it is not limited. */
	if (s->classes && bpf_map_pop_elem(&free_classes, &fresh.class)) {
		fresh.class = 0;
		count(C_NO_CLASS);
	}
	if (bpf_map_update_elem(&flows, key, &fresh, ANY)) {
		if (fresh.class)
			bpf_map_push_elem(&free_classes, &fresh.class, ANY);
		count(C_FULL);
		return 0;
	}
	return bpf_map_lookup_elem(&flows, key);
}

ALWAYS_INLINE void end(const struct key *key)
{
	struct flow *f = bpf_map_lookup_elem(&flows, key);
	u32 class = f ? f->class : 0;

	if (f && !bpf_map_delete_elem(&flows, key) && class)
		bpf_map_push_elem(&free_classes, &class, ANY);
}

/* A connection's handshake is done. */
ALWAYS_INLINE void established(struct flow *f, const struct settings *s, u32 payload)
{
	u8 clamped;

	bpf_spin_lock(&f->lock);
	f->established = 1;
	f->payload = payload;
	clamped = settle(f, s);
	/* No switch has said anything yet: ask again, in a packet that may be lost. */
	if (!f->heard)
		f->updates = 1;
	bpf_spin_unlock(&f->lock);
	if (clamped)
		count(C_OUT_OF_BOUNDS);
}

ALWAYS_INLINE void limit_set(void *socket, const struct settings *s, struct flow *f)
{
	u32 want = f->wanted, rate = want ? want : UNLIMITED;

	/* Behind `visit` nobody would take it off again. */
	if (want == f->set || s->lift)
		return;
	if (s->classes) {
		u32 priority = want && f->class ? MAJOR << 16 | f->class : 0;

		/* User space gives the class its rate. */
		if (!want == !f->set || !bpf_setsockopt(socket, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)))
			f->set = want;
		else
			count(C_NOT_SET);
		return;
	}
	if (!bpf_setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)))
		f->set = want;
	else
		count(C_NOT_SET);
}

SECTION("sockops") int sockets(struct bpf_sock_ops *ops)
{
	struct settings *s = set();
	struct key key;
	struct flow *f;
	u32 op = ops->op, local, remote;
	struct tcp_sock *tcp;
	u32 first = 0, *changes = bpf_map_lookup_elem(&woken, &first);
	void *sk;

	/* Between two visits, and without a change since the last: nothing is to be set. */
	if (op == ROUND_TRIP && changes && !*changes)
		return 1;
	if (!s || (op < CONNECT || (op > PASSIVE_ESTABLISHED && op != STATE && op != ROUND_TRIP)))
		return 1;
	if (ops->family != AF_INET && ops->family != AF_INET6)
		return 1;
	/* Of the others only those are heard that were chosen. */
	if (op <= PASSIVE_ESTABLISHED && bpf_get_netns_cookie(ops) != s->cookie)
		return 1;
	local = HERE(ops->local_ip4);
	remote = HERE(ops->remote_ip4);
	if (ops->family == AF_INET) {
		map_ipv4(key.local, local);
		map_ipv4(key.remote, remote);
	} else {
		key.local[0] = HERE(ops->local_ip6[0]);
		key.local[1] = HERE(ops->local_ip6[1]);
		key.local[2] = HERE(ops->local_ip6[2]);
		key.local[3] = HERE(ops->local_ip6[3]);
		key.remote[0] = HERE(ops->remote_ip6[0]);
		key.remote[1] = HERE(ops->remote_ip6[1]);
		key.remote[2] = HERE(ops->remote_ip6[2]);
		key.remote[3] = HERE(ops->remote_ip6[3]);
	}
	key.local_port = ops->local_port;
	key.remote_port = NETWORK16(ops->remote_port >> 16);
	if (op == CONNECT) {
		if (chosen(s, &key, OPENED) && begin(s, &key, OPENED))
			bpf_sock_ops_cb_flags_set(ops, HEARD_OF);
		return 1;
	}
	if (op == STATE) {
		if (ops->args[1] == TCP_CLOSE)
			end(&key);
		return 1;
	}
	f = bpf_map_lookup_elem(&flows, &key);
	if (op == PASSIVE_ESTABLISHED && !f && chosen(s, &key, ACCEPTED)) {
		f = begin(s, &key, ACCEPTED);
		if (f)
			bpf_sock_ops_cb_flags_set(ops, HEARD_OF);
	}
	if (!f)
		return 1;
	if (op == ROUND_TRIP) {
		catch_up(f, s);
		limit_set(ops, s, f);
		return 1;
	}
	sk = (void *)ops->sk;
	if (!sk)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 1;
	established(f, s, payload_of(tcp, &key));
	limit_set(ops, s, f);
	if (f->updates || s->classes)
		wake();
	return 1;
}

SECTION("tc") int leaving(struct packet *skb)
{
	struct settings *s;
	struct option option;
	struct seen seen;
	struct key key;
	struct flow *f;

	if (is_plain(skb, SYN) || !look(skb, &seen) || (seen.tcp.flags & (SYN | ACK)) != SYN)
		return NEXT;
	key_of(&key, &seen, 1);
	s = set();
	f = bpf_map_lookup_elem(&flows, &key);
	if (!s || !f)
		return NEXT;
	/* Where options are dropped, the next SYN goes without. */
	if (f->syns) {
		count(C_UNMARKED);
		return NEXT;
	}
	f->syns = 1;
	fill(&option, s, JOIN, 0, 0, f->weight, 0, 0, &key, NETWORK32(seen.tcp.seq));
	if (seen.header == (seen.old ? IPV4 : IPV6) && (seen.old ? insert(skb, &option) : insert6(skb, &option)))
		count(C_MARKED);
	else
		count(C_NO_ROOM);
	return NEXT;
}

/* Say that a link's notice has come, with the packet that it came in. */
ALWAYS_INLINE int answer(struct packet *skb, const struct settings *s, const struct key *key, const struct option *heard)
{
	struct {
		u32 source[4], target[4];
		u16 source_port, target_port;
	} tuple;
	u32 at, length, old = is_ipv4(key->remote);
	struct {
		u32 source, target;
		u16 source_port, target_port;
	} tuple4 = {key->remote[3], key->local[3], NETWORK16(key->remote_port), NETWORK16(key->local_port)};
	struct told6 out6 = {};
	struct told out = {};
	struct tcp_sock *tp;
	void *sk;

	for (at = 0; at < 4; at++) {
		tuple.source[at] = key->remote[at];
		tuple.target[at] = key->local[at];
	}
	tuple.source_port = NETWORK16(key->remote_port);
	tuple.target_port = NETWORK16(key->local_port);
	if (old)
		sk = bpf_skc_lookup_tcp(skb, &tuple4, sizeof(tuple4), THIS_NAMESPACE, 0);
	else
		sk = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple), THIS_NAMESPACE, 0);
	if (!sk)
		return DROP;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp) {
		bpf_sk_release(sk);
		return DROP;
	}
	/* It has the length of what is sent: others make no notices. */
	length = skb->len - ETHERNET;
	if (old) {
		fill(&out.option, s, SEEN, heard->link, 0, 1, heard->sequence, HOPS_OF(heard->head), key, 0);
		write_ack(&out, key, tp);
	} else {
		fill(&out6.hop.option, s, SEEN, heard->link, 0, 1, heard->sequence, HOPS_OF(heard->head), key, 0);
		write_ack6(&out6, key, tp);
	}
	bpf_sk_release(sk);
	if (old ? length < sizeof(out) || bpf_skb_store_bytes(skb, ETHERNET, &out, sizeof(out), RECOMPUTE)
		: length < sizeof(out6) || bpf_skb_store_bytes(skb, ETHERNET, &out6, sizeof(out6), RECOMPUTE))
		return DROP;
	return bpf_redirect_neigh(skb->ifindex, 0, 0, 0);
}

enum told_us { NOTHING, REFUSED, HEARD };

/* One option of a packet for a flow of this host. */
ALWAYS_INLINE enum told_us take(const struct settings *s, struct flow *f, const struct key *key, const struct seen *seen,
				const struct option *option, u8 is_notice)
{
	u32 kind = KIND_OF(option->head);
	u64 now = bpf_ktime_get_ns();
	enum heard heard;
	u8 clamped = 0;

	if (VERSION_OF(option->head)) {
		count(C_BAD_VERSION);
		return REFUSED;
	}
	if (!is_notice && (kind != TRACE || (seen->tcp.flags & (SYN | ACK)) != (SYN | ACK))) {
		/* Other hosts' options, that their switches pass on, are none of a host's business. */
		if (kind == NOTICE || kind == TRACE)
			count(C_MALFORMED);
		return REFUSED;
	}
	if (!option->weight || !(option->weight & NETWORK16(0x7ff)) || (!is_notice && !option->rate)) {
		count(C_MALFORMED);
		return REFUSED;
	}
	if (s->keyed) {
		u32 got = (u32)option->check[0] << 16 | (u32)option->check[1] << 8 | option->check[2];
		u32 bound = is_notice ? 0 : NETWORK32(seen->tcp.ack);

		if (check_for(s->keys[KEY_OF(option->head)], key, bound, option) != got) {
			count(C_BAD_CHECK);
			return REFUSED;
		}
	}
	if (now - f->second >= SECOND) {
		f->second = now;
		f->changes = 0;
	}
	if (f->changes >= s->changes) {
		count(C_TOO_OFTEN);
		return REFUSED;
	}
	f->changes++;
	if (is_notice && HOPS_OF(option->head) == FOR_ALL) {
		heard = hear_for_all(option, now);
		wake();
	} else {
		heard = hear(f, s, is_notice, option, now, &clamped);
	}
	if (heard == OLD) {
		count(C_STALE);
		return REFUSED;
	}
	if (heard == NO_SHARE) {
		count(C_TOO_MANY_LINKS);
		return REFUSED;
	}
	/* One that says what the flow does not pass any more says nothing of its rate. */
	if (option->rate) {
		f->heard = now;
		f->asking = 0;
	}
	count(is_notice ? C_NOTICES : C_TRACES);
	if (clamped)
		count(C_OUT_OF_BOUNDS);
	if (f->wanted != f->set || f->updates || s->classes)
		wake();
	return HEARD;
}

SECTION("tc") int came(struct packet *skb)
{
	struct option option = {};
	struct settings *s;
	struct seen seen;
	struct key key;
	struct flow *f;
	enum told_us result = NOTHING;
	u32 at;
	u8 is_notice = 0;

	if (is_plain(skb, 0) || !look(skb, &seen))
		return NEXT;
	s = set();
	key_of(&key, &seen, 0);
	f = bpf_map_lookup_elem(&flows, &key);
	at = seen.options;
	/* Where switches append their traces, there are several. */
	for (int number = 0; number < TRACES && s; number++) {
		if (at + OPTION_LENGTH > seen.header ||
		    bpf_skb_load_bytes(skb, ETHERNET + at, &option, sizeof(option)))
			break;
		if (option.type != (seen.old ? OPTION_TYPE : OPTION_TYPE6) ||
		    option.length != (seen.old ? OPTION_LENGTH : OPTION_LENGTH6))
			break;
		/* TCP sends nothing without flags. */
		is_notice = KIND_OF(option.head) == NOTICE && !(seen.tcp.flags & (SYN | ACK | RST | FIN));
		if (!f) {
			if (is_notice)
				count(C_NOT_OURS);
			break;
		}
		result = take(s, f, &key, &seen, &option, is_notice);
		if (is_notice || result == REFUSED)
			break;
		at += seen.old ? OPTION_LENGTH : OPTION_ROOM6;
	}
	if (!is_notice)
		return NEXT;
	/* Without an answer the switch says it again. */
	return result == HEARD && f && f->established ? answer(skb, s, &key, &option) : DROP;
}

/* Whether a socket is in one of the cgroups that flows are chosen by. */
ALWAYS_INLINE int in_cgroup(struct sock *sk, const struct settings *s)
{
	struct cgroup *cgroup = sk->sk_cgrp_data.cgroup;

	if (s->any_cgroup)
		return 1;
	for (int level = 0; level < CGROUP_DEPTH && cgroup; level++) {
		struct cgroup_subsys_state *parent;
		u64 id = cgroup->kn->id;

		for (int at = 0; at < CGROUPS; at++)
			if (s->cgroups[at] && s->cgroups[at] == id)
				return 1;
		parent = cgroup->self.parent;
		cgroup = parent ? parent->cgroup : 0;
	}
	return 0;
}

/* A connection that began before. */
ALWAYS_INLINE struct flow *adopted(struct tcp_sock *tp, const struct settings *s, const struct key *key)
{
	u8 direction = key->local_port >= s->first_port && key->local_port <= s->last_port ? OPENED : ACCEPTED;
	u32 flags = HEARD_OF;
	struct flow *f;

	if (!chosen(s, key, direction) || !in_cgroup((struct sock *)tp, s))
		return 0;
	f = begin(s, key, direction);
	if (!f)
		return 0;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags))) {
		/* Its end would not be heard of. */
		end(key);
		return 0;
	}
	established(f, s, payload_of(tp, key));
	count(C_ADOPTED);
	return f;
}

/* Take off a limit that was set here. */
ALWAYS_INLINE void unlimit(struct tcp_sock *tp)
{
	unsigned long limit = ((struct sock *)tp)->sk_max_pacing_rate;
	u32 none = UNLIMITED;

	if (limit < UNLIMITED && (limit & MARK_BITS) == MARK)
		bpf_setsockopt(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &none, sizeof(none));
	none = 0;
	if (((struct sock *)tp)->sk_priority >> 16 == MAJOR)
		bpf_setsockopt(tp, SOL_SOCKET, SO_PRIORITY, &none, sizeof(none));
}

/* What an application takes of what the links give. What it leaves is for others; gives whether switches are to be told. */
ALWAYS_INLINE int measure(struct flow *f, const struct settings *s, struct tcp_sock *tp, u64 now)
{
	u64 acked = tp->bytes_acked, spent = now - f->measured, used, limit = f->limit;

	if (spent < LOOK || !s->lends)
		return 0;
	used = (acked - f->acked) * 8000000 / (spent + 1);
	used = f->payload ? (used << 16) / f->payload : used;
	f->acked = acked;
	f->measured = now;
	if (f->state != PACED || spent > 4 * SECOND) {
		f->idle = 0;
		return 0;
	}
	/* More than it took before: it may have all again. */
	if (limit && used > limit - (limit >> 3)) {
		f->limit = 0;
		f->idle = 0;
		return 1;
	}
	if (used + (used >> 1) >= (limit ? limit : f->kbps)) {
		f->idle = 0;
		return 0;
	}
	if (!f->idle)
		f->idle = now - spent;
	if (now - f->idle < IDLE)
		return 0;
	f->idle = 0;
	used += used >> 2;
	if (used < LEAST_LIMIT)
		used = LEAST_LIMIT;
	if (used >= (limit ? limit : f->kbps))
		return 0;
	f->limit = used;
	return 1;
}

/* Have user space say what a flow takes. A call, for the stack's sake. */
static __attribute__((noinline)) int ask(void *seq, const struct settings *s, struct flow *f, struct tcp_sock *tp,
					 const struct key *key)
{
	union {
		struct told four;
		struct told6 six;
	} out = {};
	struct option option;
	u64 now = bpf_ktime_get_ns();
	u32 kbps;
	u8 link;
	long full;

	/* What changes from here on is told by another one. */
	f->updates = 0;
	bpf_spin_lock(&f->lock);
	kbps = f->kbps;
	link = f->kbps ? f->link : 0;
	f->told_kbps = kbps;
	f->told_link = link;
	bpf_spin_unlock(&f->lock);
	if (f->limit && f->limit < kbps) {
		kbps = f->limit;
		link = APPLICATION;
	}
	fill(&option, s, UPDATE, link, kbps, f->weight, 0, 0, key, 0);
	if (is_ipv4(key->remote)) {
		out.four.option = option;
		write_ack(&out.four, key, tp);
		full = bpf_seq_write(seq, &out.four, sizeof(out.four));
	} else {
		out.six.hop.option = option;
		write_ack6(&out.six, key, tp);
		full = bpf_seq_write(seq, &out.six, sizeof(out.six));
	}
	if (full) {
		/* The kernel shows this socket again, with an empty buffer. */
		f->updates = 1;
		return 0;
	}
	f->asked = now;
	f->questions += f->questions < 15;
	f->sent = tp->snd_nxt;
	if (!f->asking)
		f->asking = now;
	bpf_spin_lock(&f->lock);
	for (int at = 0; at < LINKS; at++)
		if (!f->shares[at].asked)
			f->shares[at].asked = now;
	bpf_spin_unlock(&f->lock);
	count(C_UPDATES);
	return 0;
}

SECTION("iter/tcp") int visit(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct settings *s = set();
	struct tcp_sock *tp;
	struct flow *f;
	struct key key;
	u8 asks;
	u64 now;

	if (!common || !s || (common->skc_family != AF_INET && common->skc_family != AF_INET6))
		return 0;
	if (common->skc_family == AF_INET) {
		map_ipv4(key.local, common->skc_rcv_saddr);
		map_ipv4(key.remote, common->skc_daddr);
	} else {
		for (int at = 0; at < 4; at++) {
			key.local[at] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[at];
			key.remote[at] = common->skc_v6_daddr.in6_u.u6_addr32[at];
		}
	}
	key.local_port = common->skc_num;
	key.remote_port = NETWORK16(common->skc_dport);
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	if (s->lift) {
		unlimit(tp);
		return 0;
	}
	f = bpf_map_lookup_elem(&flows, &key);
	if (s->sorts) {
		if (!f)
			return 0;
		if (in_cgroup((struct sock *)tp, s)) {
			f->sorting = s->sorting;
			return 0;
		}
		unlimit(tp);
		end(&key);
		return 0;
	}
	if (!f && s->adopt && common->skc_state == TCP_ESTABLISHED)
		f = adopted(tp, s, &key);
	if (!f || !f->established)
		return 0;
	now = bpf_ktime_get_ns();
	catch_up(f, s);
	asks = f->updates | measure(f, s, tp, now);
	/* Questions: what sends is refreshed. Where nobody has answered yet, soon again at first, then seldom. */
	if (f->heard)
		asks |= now - f->asked >= s->refresh && now - f->heard >= s->refresh && tp->snd_nxt != f->sent;
	else
		asks |= now - f->asked >= 8 * s->refresh || now - f->asked >= SECOND << (f->questions & 15);
	if (f->state == PACED && f->asking && now - f->asking >= s->timeout) {
		f->state = SILENT;
		f->wanted = 0;
		count(C_SILENT);
	}
	limit_set(tp, s, f);
	/* Behind its FIN, a question would have switches take the flow for one that is there. */
	if (!asks || (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT))
		return 0;
	ask(ctx->meta->seq, s, f, tp, &key);
	return 0;
}

char terms[] SECTION("license") = "GPL";
