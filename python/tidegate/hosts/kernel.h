/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What the BPF programs see of the kernel. Only the fields that are used: where they lie in the kernel that runs is filled in
 * when the program is loaded, so that no headers of that kernel are needed.
 */
#pragma once
#include "words.h"

#define SECTION(name) __attribute__((section(name), used))

/* Helpers of the kernel, by their numbers. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_skb_store_bytes)(void *skb, u32 offset, const void *from, u32 len, u64 flags) = (void *)9;
static long (*bpf_l3_csum_replace)(void *skb, u32 offset, u64 from, u64 to, u64 size) = (void *)10;
static long (*bpf_skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
static s64 (*bpf_csum_diff)(const void *from, u32 from_size, const void *to, u32 to_size, u32 seed) = (void *)28;
static long (*bpf_setsockopt)(void *socket, int level, int name, void *value, int len) = (void *)49;
static long (*bpf_skb_adjust_room)(void *skb, s32 by, u32 mode, u64 flags) = (void *)50;
static long (*bpf_sock_ops_cb_flags_set)(void *ops, int flags) = (void *)59;
static long (*bpf_sk_release)(void *sk) = (void *)86;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*bpf_spin_lock)(void *lock) = (void *)93;
static long (*bpf_spin_unlock)(void *lock) = (void *)94;
static void *(*bpf_sk_fullsock)(void *sk) = (void *)95;
static void *(*bpf_skc_lookup_tcp)(void *skb, void *tuple, u32 size, u64 namespace, u64 flags) = (void *)99;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*bpf_tcp_send_ack)(void *tp, u32 rcv_nxt) = (void *)116;
static u64 (*bpf_get_netns_cookie)(void *ops) = (void *)122;
static long (*bpf_seq_write)(void *seq, const void *data, u32 len) = (void *)127;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static void *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static long (*bpf_redirect_neigh)(u32 ifindex, void *params, int len, u64 flags) = (void *)152;
static long (*bpf_loop)(u32 times, int (*body)(u32 index, void *with), void *with, u64 flags) = (void *)181;
static long (*bpf_store_hdr_opt)(void *ops, const void *from, u32 len, u64 flags) = (void *)143;
static long (*bpf_reserve_hdr_opt)(void *ops, u32 len, u64 flags) = (void *)144;

/* Of a map's definition. */
#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) type *name
#define HASH 1
#define ARRAY 2
#define PER_CPU_ARRAY 6
#define LPM 11
#define QUEUE 22
#define SK_STORAGE 24
#define RING 27
#define NO_PREALLOC 1
#define GET_OR_CREATE 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

/* Addresses and `skc_dport` in network order. */
struct sock_common {
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
};

struct bpf_iter_meta {
	void *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_priority;
	u32 sk_pacing_status;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

/* The least of some time. */
struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u16 rcv_wscale : 4;
};

struct tcp_sock {
	/* Microseconds. */
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	u16 tcp_header_len;
	u64 bytes_acked;
	u32 rcv_wnd;
	u32 rcv_wup;
	u32 snd_una;
	u32 snd_nxt;
	u32 srtt_us;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 high_seq;
	u32 prr_out;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 rcv_nxt;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
};

struct rate_sample {
	/* Microseconds; negative: none was measured. */
	long rtt_us;
	u32 acked_sacked;
	s32 losses;
};

/* Members that are left out stay as if the module had none. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*init)(struct sock *sk);
	u32 flags;
	char name[16];
};

#pragma clang attribute pop

/* Functions of the kernel. */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __attribute__((section(".ksyms")));

/* These layouts are promised to user space: they do not move. For programs at an interface: */
struct packet {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex;
	u32 ifindex, tc_index, cb[5], hash, tc_classid, data, data_end, napi_id, family, remote_ip4, local_ip4;
	u32 remote_ip6[4], local_ip6[4], remote_port, local_port, data_meta;
	u64 flow_keys, tstamp;
	u32 wire_len, gso_segs;
	void *sk;
};

/* For programs of sockets' events. Addresses are in network order, `remote_port` as well, in its upper half. */
struct bpf_sock_ops {
	u32 op, args[4];
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port;
	u32 is_fullsock, snd_cwnd, srtt_us, cb_flags, state, rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una;
	u32 mss_cache, ecn_flags, rate_delivered, rate_interval_us, packets_out, retrans_out, total_retrans;
	u32 segs_in, data_segs_in, segs_out, data_segs_out, lost_out, sacked_out, sk_txhash;
	u64 bytes_received, bytes_acked, sk, skb_data, skb_data_end;
	u32 skb_len, skb_tcp_flags;
};

struct bpf_sock {
	u32 bound_dev_if, family, type, protocol, mark, priority, src_ip4, src_ip6[4], src_port;
	u32 dst_port, dst_ip4, dst_ip6[4], state;
};

struct bpf_spin_lock {
	u32 val;
};

enum socket_event {
	CONNECT = 3,
	ACTIVE_ESTABLISHED = 4,
	PASSIVE_ESTABLISHED = 5,
	STATE = 10,
	LISTEN = 11,
	ROUND_TRIP = 12,
	OPTIONS_LENGTH = 14,
	WRITE_OPTIONS = 15,
};

enum ca_state { OPEN, DISORDER, CWR, RECOVERY, LOSS };
enum ca_event { EVENT_RESTART = 1, EVENT_LOSS = 3, EVENT_NO_CE = 4, EVENT_IS_CE = 5 };

/* Of an ACK. */
#define ACKED_DATA 0x04
#define ACKED_NEW 0x400

#define NEEDS_ECN 2
#define NEEDS_ACCURATE_ECN 4
#define ECN_MODE_RFC3168 1
#define ECN_MODE_ACCURATE 16
#define ECN_DEMAND_CWR 4
#define ACK_TIMER 2
#define ACK_NOW 16
#define PACING_NEEDED 1

#define ETHERNET 14
#define IPV4 20
#define IPV6 40
#define ECT1 1
#define ECT0 2

/* A bit field's value. Kinds of relocation: 0 offset of its bytes, 4 and 5 shifts. */
#define BITS(from, field)                                                                                    \
	({                                                                                                   \
		u8 byte = *(u8 *)((void *)(from) + __builtin_preserve_field_info((from)->field, 0));         \
		u64 wide = byte;                                                                             \
		wide << __builtin_preserve_field_info((from)->field, 4) >>                                   \
			__builtin_preserve_field_info((from)->field, 5);                                     \
	})

/* The same of a field whose type has 16 bits. */
#define BITS16(from, field)                                                                                  \
	({                                                                                                   \
		u16 word = *(u16 *)((void *)(from) + __builtin_preserve_field_info((from)->field, 0));       \
		u64 wide = word;                                                                             \
		wide << __builtin_preserve_field_info((from)->field, 4) >>                                   \
			__builtin_preserve_field_info((from)->field, 5);                                     \
	})

ALWAYS_INLINE u32 in_flight(struct tcp_sock *tp)
{
	u32 out = tp->packets_out + tp->retrans_out, gone = tp->sacked_out + tp->lost_out;

	return out > gone ? out - gone : 0;
}

/* The window per round trip, times `percent`. The kernel leaves this to a congestion control that sets its window itself. */
ALWAYS_INLINE void set_pacing_rate(struct sock *sk, struct tcp_sock *tp, u32 packets, u32 percent)
{
	u32 srtt = tp->srtt_us >> 3;
	u64 rate;

	if (srtt == 0)
		return;
	rate = (u64)packets * tp->mss_cache * percent * 10000 / srtt;
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* What the kernel makes of ssthresh before it restarts from a small window after idle time (tcp_current_ssthresh). */
ALWAYS_INLINE u32 after_idle(struct tcp_sock *tp, u32 ssthresh)
{
	return larger(ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
