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
#include "option.h"

#define AF_INET6 10
#define SO_PRIORITY 12
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
/* What is heard of a socket: changes of its state, and each round trip. */
#define HEARD_OF (1 << 2 | 1 << 3)
#define TCP_ESTABLISHED 1
#define RECOMPUTE 1
#define ANY 0
#define SECOND 1000000000ull
/* Of measuring what an application takes, in nanoseconds. */
#define LOOK (SECOND / 5)
/* So long before what it leaves is given away. */
#define IDLE SECOND
/* In kbit/s. */
#define LEAST_LIMIT 16
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

/* Bytes/s of payload that a rate of frames is. The caller has the lock. */
ALWAYS_INLINE u32 payload_rate(const struct flow *f, const struct settings *s, u8 *clamped)
{
	u64 rate = (u64)f->kbps * 125 * f->payload >> 16;

	*clamped = 1;
	if (rate > s->most)
		rate = s->most;
	else if (rate < s->least)
		rate = s->least;
	else
		*clamped = 0;
	return (rate & ~(u64)MARK_BITS) | MARK;
}

/* The least of what the links give holds. The caller has the lock. Gives whether it was clamped. */
ALWAYS_INLINE u8 settle(struct flow *f, const struct settings *s)
{
	u64 least = 0;
	u8 stays = 0, found = 0, clamped = 0;

	for (int at = 0; at < LINKS; at++)
		stays |= f->shares[at].known && !f->shares[at].left;
	for (int at = 0; at < LINKS; at++) {
		struct share *share = &f->shares[at];
		u64 part;

		if (stays && share->left) {
			share->known = 0;
			share->left = 0;
		}
		if (!share->known)
			continue;
		/* A weight of 0 was refused before. */
		part = ((u64)share->kbps << 16) / (share->weight | !share->weight);
		if (!found || part < least) {
			least = part;
			f->link = share->link;
		}
		found = 1;
	}
	if (found) {
		u64 kbps = (least * f->weight) >> 16;

		f->kbps = kbps > 0x7fffffff ? 0x7fffffff : kbps;
		f->state = PACED;
		if (f->payload)
			f->wanted = payload_rate(f, s, &clamped);
	}
	return clamped;
}

enum heard { TAKEN, OLD, NO_SHARE };

/* What a switch says of a link. */
ALWAYS_INLINE enum heard hear(struct flow *f, const struct settings *s, u8 is_notice, const struct option *option, u8 *clamped)
{
	u32 kbps = number(NETWORK16(option->rate)), weight = number(NETWORK16(option->weight));
	enum heard result = TAKEN;
	int found = -1, free = -1;
	u32 shares = 0;
	u8 link;

	bpf_spin_lock(&f->lock);
	for (int at = LINKS - 1; at >= 0; at--) {
		if (!f->shares[at].known)
			free = at;
		else if (f->shares[at].link == option->link)
			found = at;
	}
	if (found < 0 && kbps)
		found = free;
	if (found < 0) {
		/* One that it leaves, and has not known: it is so already. */
		result = kbps ? NO_SHARE : TAKEN;
		goto out;
	}
	/* The kernel's verifier does not know it. */
	if (found >= LINKS)
		goto out;
	struct share *share = &f->shares[found & (LINKS - 1)];

	if (!kbps) {
		share->left = 1;
		share->noticed = 0;
	} else {
		if (!share->known) {
			share->noticed = 0;
			share->known = 1;
		}
		if (is_notice) {
			if (share->noticed && (u8)(option->sequence - share->sequence) >= 128) {
				result = OLD;
				goto out;
			}
			share->sequence = option->sequence;
			share->noticed = 1;
		}
		share->link = option->link;
		share->kbps = kbps;
		share->weight = weight;
		share->left = 0;
	}
	*clamped = settle(f, s);
	for (int at = 0; at < LINKS; at++)
		shares += f->shares[at].known;
	link = f->link;
	/* Links beside the one that limits it are to know; what differs by less than 1/512 is not told. */
	if (shares > 1) {
		u32 more = f->kbps > f->told_kbps ? f->kbps - f->told_kbps : f->told_kbps - f->kbps;

		if (link != f->told_link || more > f->told_kbps >> 9)
			f->updates = 1;
	}
out:
	bpf_spin_unlock(&f->lock);
	return result;
}

/* Whether a flow is to be paced. */
ALWAYS_INLINE int chosen(const struct settings *s, const struct key *key, u8 direction)
{
	u32 port = direction == OPENED ? key->remote_port : key->local_port;
	struct prefix peer = {32, key->remote};

	if (!(s->directions & direction))
		return 0;
	if (!s->any_port && !bpf_map_lookup_elem(&ports, &port))
		return 0;
	return s->any_peer || bpf_map_lookup_elem(&peers, &peer);
}

ALWAYS_INLINE struct flow *begin(const struct settings *s, const struct key *key, u8 direction)
{
	struct flow fresh = {};

	fresh.weight = s->weight;
	fresh.direction = direction;
	fresh.state = ASKING;
	fresh.opened = bpf_ktime_get_ns();
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

/* The part of a connection's full frames that is payload. */
ALWAYS_INLINE u32 payload_of(struct tcp_sock *tp)
{
	u32 mss = tp->mss_cache;

	if (!mss || mss > 65535)
		return 0;
	return (mss << 16) / (mss + tp->tcp_header_len + IPV4 + ETHERNET);
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

	if (want == f->set)
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
	u32 op = ops->op;
	struct tcp_sock *tcp;
	u32 first = 0, *changes = bpf_map_lookup_elem(&woken, &first);
	void *sk;

	/* Between two visits, and without a change since the last: nothing is to be set. */
	if (op == ROUND_TRIP && changes && !*changes)
		return 1;
	if (!s || (op < CONNECT || (op > PASSIVE_ESTABLISHED && op != STATE && op != ROUND_TRIP)))
		return 1;
	/* IPv4, also in sockets of IPv6. */
	if (ops->family == AF_INET6 && (ops->remote_ip6[0] | ops->remote_ip6[1] || ops->remote_ip6[2] != NETWORK32(0xffff)))
		return 1;
	if (ops->family != AF_INET && ops->family != AF_INET6)
		return 1;
	/* Of the others only those are heard that were chosen. */
	if (op <= PASSIVE_ESTABLISHED && bpf_get_netns_cookie(ops) != s->cookie)
		return 1;
	key.local = ops->local_ip4;
	key.remote = ops->remote_ip4;
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
		limit_set(ops, s, f);
		return 1;
	}
	sk = (void *)ops->sk;
	if (!sk)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 1;
	established(f, s, payload_of(tcp));
	limit_set(ops, s, f);
	if (f->updates || s->classes)
		wake();
	return 1;
}

/* Most packets are of no interest: IPv4 without options, and on the way out, no SYN. */
ALWAYS_INLINE int is_plain(struct packet *skb, u8 flags)
{
	u8 *data = (u8 *)(long)skb->data, *end = (u8 *)(long)skb->data_end;

	if (skb->protocol != NETWORK16(ETHERTYPE_IPV4))
		return 1;
	if (data + ETHERNET + IPV4 + sizeof(struct tcp_header) > end || data[ETHERNET] != 0x45)
		return 0;
	return !(data[ETHERNET + IPV4 + 13] & flags) || !flags;
}

/* The IPv4 header of a packet of TCP. */
ALWAYS_INLINE int look(struct packet *skb, struct ip_header *ip)
{
	if (skb->protocol != NETWORK16(ETHERTYPE_IPV4) || bpf_skb_load_bytes(skb, ETHERNET, ip, sizeof(*ip)))
		return 0;
	return ip->protocol == PROTOCOL_TCP && !(ip->fragment & NETWORK16(FRAGMENT_OFFSET));
}

SECTION("tc") int leaving(struct packet *skb)
{
	struct settings *s;
	struct ip_header ip;
	struct tcp_header tcp;
	struct option option;
	struct key key;
	struct flow *f;
	u32 header;

	if (is_plain(skb, SYN) || !look(skb, &ip))
		return NEXT;
	header = (ip.version_length & 15) * 4;
	if (header < IPV4 || bpf_skb_load_bytes(skb, ETHERNET + header, &tcp, sizeof(tcp)))
		return NEXT;
	if ((tcp.flags & (SYN | ACK)) != SYN)
		return NEXT;
	key.local = ip.source;
	key.remote = ip.target;
	key.local_port = NETWORK16(tcp.source);
	key.remote_port = NETWORK16(tcp.target);
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
	if (header != IPV4) {
		count(C_NO_ROOM);
		return NEXT;
	}
	fill(&option, s, JOIN, 0, 0, f->weight, 0, &key, NETWORK32(tcp.seq));
	if (bpf_skb_adjust_room(skb, OPTION_LENGTH, BETWEEN_IP_AND_TCP, SAME_SEGMENTS)) {
		count(C_NO_ROOM);
		return NEXT;
	}
	ip.version_length = 0x48;
	ip.length = NETWORK16(NETWORK16(ip.length) + OPTION_LENGTH);
	ip.checksum = 0;
	ip.checksum = folded(sum_of(&option, sizeof(option), sum_of(&ip, sizeof(ip), 0)));
	bpf_skb_store_bytes(skb, ETHERNET, &ip, sizeof(ip), 0);
	bpf_skb_store_bytes(skb, ETHERNET + IPV4, &option, sizeof(option), 0);
	count(C_MARKED);
	return NEXT;
}

/* Say that a link's notice has come, with the packet that it came in. */
ALWAYS_INLINE int answer(struct packet *skb, const struct settings *s, const struct key *key, const struct told *told)
{
	struct {
		u32 source, target;
		u16 source_port, target_port;
	} tuple = {told->ip.source, told->ip.target, told->tcp.source, told->tcp.target};
	struct told out = {};
	struct tcp_sock *tp;
	void *sk;

	sk = bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple), THIS_NAMESPACE, 0);
	if (!sk)
		return DROP;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp) {
		bpf_sk_release(sk);
		return DROP;
	}
	fill(&out.option, s, SEEN, told->option.link, 0, 1, told->option.sequence, key, 0);
	write_ack(&out, key, tp);
	bpf_sk_release(sk);
	if (bpf_skb_store_bytes(skb, ETHERNET, &out, sizeof(out), RECOMPUTE))
		return DROP;
	return bpf_redirect_neigh(skb->ifindex, 0, 0, 0);
}

SECTION("tc") int came(struct packet *skb)
{
	struct settings *s;
	struct told told;
	struct key key;
	struct flow *f;
	u64 now;
	u32 header, kind;
	u8 is_notice, clamped = 0;
	enum heard heard;

	if (is_plain(skb, 0) || !look(skb, &told.ip))
		return NEXT;
	header = (told.ip.version_length & 15) * 4;
	if (header < IPV4 + OPTION_LENGTH || bpf_skb_load_bytes(skb, ETHERNET + IPV4, &told.option, sizeof(told.option)))
		return NEXT;
	if (told.option.type != OPTION_TYPE || told.option.length != OPTION_LENGTH)
		return NEXT;
	if (bpf_skb_load_bytes(skb, ETHERNET + header, &told.tcp, sizeof(told.tcp)))
		return NEXT;
	s = set();
	if (!s)
		return NEXT;
	kind = KIND_OF(told.option.head);
	/* TCP sends nothing without flags. */
	is_notice = kind == NOTICE && !(told.tcp.flags & (SYN | ACK | RST | FIN));
	key.local = told.ip.target;
	key.remote = told.ip.source;
	key.local_port = NETWORK16(told.tcp.target);
	key.remote_port = NETWORK16(told.tcp.source);
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f) {
		if (is_notice)
			count(C_NOT_OURS);
		return is_notice ? DROP : NEXT;
	}
	if (VERSION_OF(told.option.head)) {
		count(C_BAD_VERSION);
		return is_notice ? DROP : NEXT;
	}
	if (!is_notice && (kind != TRACE || (told.tcp.flags & (SYN | ACK)) != (SYN | ACK))) {
		/* Other hosts' options, that their switches pass on, are none of a host's business. */
		if (kind == NOTICE || kind == TRACE)
			count(C_MALFORMED);
		return NEXT;
	}
	if (!told.option.weight || !(told.option.weight & NETWORK16(0x7ff)) || (!is_notice && !told.option.rate)) {
		count(C_MALFORMED);
		return is_notice ? DROP : NEXT;
	}
	if (s->keyed) {
		u32 got = (u32)told.option.check[0] << 16 | (u32)told.option.check[1] << 8 | told.option.check[2];
		u32 bound = is_notice ? 0 : NETWORK32(told.tcp.ack);

		if (check_for(s->keys[KEY_OF(told.option.head)], &key, bound, &told.option) != got) {
			count(C_BAD_CHECK);
			return is_notice ? DROP : NEXT;
		}
	}
	now = bpf_ktime_get_ns();
	if (now - f->second >= SECOND) {
		f->second = now;
		f->changes = 0;
	}
	if (f->changes >= s->changes) {
		count(C_TOO_OFTEN);
		return is_notice ? DROP : NEXT;
	}
	f->changes++;
	heard = hear(f, s, is_notice, &told.option, &clamped);
	if (heard == OLD) {
		count(C_STALE);
		return DROP;
	}
	if (heard == NO_SHARE) {
		count(C_TOO_MANY_LINKS);
		return is_notice ? DROP : NEXT;
	}
	f->heard = now;
	f->asking = 0;
	count(is_notice ? C_NOTICES : C_TRACES);
	if (clamped)
		count(C_OUT_OF_BOUNDS);
	if (f->wanted != f->set || f->updates || s->classes)
		wake();
	if (!is_notice)
		return NEXT;
	/* Without an answer the switch says it again. */
	return f->established ? answer(skb, s, &key, &told) : DROP;
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
	established(f, s, payload_of(tp));
	count(C_ADOPTED);
	return f;
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

SECTION("iter/tcp") int visit(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct settings *s = set();
	struct told out = {};
	struct tcp_sock *tp;
	struct flow *f;
	struct key key;
	u32 kbps;
	u8 link, asks;
	u64 now;

	if (!common || !s || (common->skc_family != AF_INET && common->skc_family != AF_INET6))
		return 0;
	key.local = common->skc_rcv_saddr;
	key.remote = common->skc_daddr;
	key.local_port = common->skc_num;
	key.remote_port = NETWORK16(common->skc_dport);
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	if (s->lift) {
		unsigned long limit = ((struct sock *)tp)->sk_max_pacing_rate;
		u32 none = UNLIMITED;

		if (limit < UNLIMITED && (limit & MARK_BITS) == MARK)
			bpf_setsockopt(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &none, sizeof(none));
		none = 0;
		if (((struct sock *)tp)->sk_priority >> 16 == MAJOR)
			bpf_setsockopt(tp, SOL_SOCKET, SO_PRIORITY, &none, sizeof(none));
		return 0;
	}
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f && s->adopt && common->skc_state == TCP_ESTABLISHED)
		f = adopted(tp, s, &key);
	if (!f || !f->established)
		return 0;
	now = bpf_ktime_get_ns();
	asks = f->updates | measure(f, s, tp, now);
	/* Questions: what has had no answer is asked again, and what sends is refreshed. */
	if (now - f->asked >= s->refresh && now - f->heard >= s->refresh && (tp->snd_nxt != f->sent || !f->heard)) {
		/* Those that never had an answer, in longer intervals. */
		if (f->heard || now - f->opened < s->timeout || now - f->asked >= 8 * s->refresh)
			asks = 1;
	}
	if (f->state == PACED && f->asking && now - f->asking >= s->timeout) {
		f->state = SILENT;
		f->wanted = 0;
		count(C_SILENT);
	}
	limit_set(tp, s, f);
	if (!asks)
		return 0;
	f->updates = 0;
	f->asked = now;
	f->sent = tp->snd_nxt;
	if (!f->asking)
		f->asking = now;
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
	fill(&out.option, s, UPDATE, link, kbps, f->weight, 0, &key, 0);
	write_ack(&out, &key, tp);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	count(C_UPDATES);
	return 0;
}

char terms[] SECTION("license") = "GPL";
