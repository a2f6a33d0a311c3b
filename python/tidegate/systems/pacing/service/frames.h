/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * Packets at an interface: what they are, and options put into them.
 */
#pragma once
#include "option.h"

/* Most packets are of no interest: without options of IP, and on the way out, no SYN. */
ALWAYS_INLINE int is_plain(struct packet *skb, u8 flags)
{
	u8 *data = (u8 *)(long)skb->data, *end = (u8 *)(long)skb->data_end, has;

	if (skb->protocol == NETWORK16(ETHERTYPE_IPV4)) {
		if (data + ETHERNET + IPV4 + sizeof(struct tcp_header) > end || data[ETHERNET] != 0x45)
			return 0;
		has = data[ETHERNET + IPV4 + 13];
	} else if (skb->protocol == NETWORK16(ETHERTYPE_IPV6)) {
		if (data + ETHERNET + IPV6 + sizeof(struct tcp_header) > end || data[ETHERNET + 6] == PROTOCOL_HOP_BY_HOP)
			return 0;
		has = data[ETHERNET + IPV6 + 13];
	} else {
		return 1;
	}
	return !(has & flags) || !flags;
}

/* A packet of TCP, as far as it is of interest. */
struct seen {
	u32 source[4], target[4];
	struct tcp_header tcp;
	/* Bytes from the beginning of IP's header to its first option, and to TCP. */
	u32 options, header;
	u8 old;
};

ALWAYS_INLINE int look(struct packet *skb, struct seen *seen)
{
	u8 next;

	seen->old = skb->protocol == NETWORK16(ETHERTYPE_IPV4);
	if (seen->old) {
		struct ip_header ip;

		if (bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)) || ip.fragment & NETWORK16(FRAGMENT_OFFSET))
			return 0;
		map_ipv4(seen->source, ip.source);
		map_ipv4(seen->target, ip.target);
		seen->options = IPV4;
		seen->header = (ip.version_length & 15) * 4;
		if (seen->header < IPV4)
			return 0;
		next = ip.protocol;
	} else {
		struct ip6_header ip;

		if (skb->protocol != NETWORK16(ETHERTYPE_IPV6) || bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)))
			return 0;
		for (int at = 0; at < 4; at++) {
			seen->source[at] = ip.source[at];
			seen->target[at] = ip.target[at];
		}
		seen->options = IPV6 + 2;
		seen->header = IPV6;
		next = ip.next;
		if (next == PROTOCOL_HOP_BY_HOP) {
			u8 hop[2];

			if (bpf_skb_load_bytes(skb, ETHERNET + IPV6, hop, sizeof(hop)))
				return 0;
			next = hop[0];
			seen->header += 8 * (hop[1] + 1);
		}
	}
	return next == PROTOCOL_TCP && !bpf_skb_load_bytes(skb, ETHERNET + seen->header, &seen->tcp, sizeof(seen->tcp));
}

/* The flow of a packet that comes, or that leaves. */
ALWAYS_INLINE void key_of(struct key *key, const struct seen *seen, u8 leaves)
{
	const u32 *local = leaves ? seen->source : seen->target, *remote = leaves ? seen->target : seen->source;

	for (int at = 0; at < 4; at++) {
		key->local[at] = local[at];
		key->remote[at] = remote[at];
	}
	key->local_port = NETWORK16(leaves ? seen->tcp.source : seen->tcp.target);
	key->remote_port = NETWORK16(leaves ? seen->tcp.target : seen->tcp.source);
}

/* Puts an option behind the IPv4 header of a packet that has none. */
ALWAYS_INLINE int insert(struct packet *skb, const struct option *option)
{
	struct ip_header ip;

	if (bpf_skb_adjust_room(skb, OPTION_LENGTH, BETWEEN_IP_AND_TCP, SAME_SEGMENTS) ||
	    bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)))
		return 0;
	ip.version_length = 0x48;
	ip.length = NETWORK16(NETWORK16(ip.length) + OPTION_LENGTH);
	ip.checksum = 0;
	ip.checksum = folded(sum_of(option, sizeof(*option), sum_of(&ip, sizeof(ip), 0)));
	bpf_skb_store_bytes(skb, ETHERNET, &ip, sizeof(ip), 0);
	bpf_skb_store_bytes(skb, ETHERNET + IPV4, option, sizeof(*option), 0);
	return 1;
}

/* The same, in a header of its own behind that of IPv6. */
ALWAYS_INLINE int insert6(struct packet *skb, const struct option *option)
{
	struct hop_by_hop hop;
	struct ip6_header ip;

	if (bpf_skb_adjust_room(skb, sizeof(hop), BETWEEN_IP_AND_TCP, SAME_SEGMENTS) ||
	    bpf_skb_load_bytes(skb, ETHERNET, &ip, sizeof(ip)))
		return 0;
	ip.next = PROTOCOL_HOP_BY_HOP;
	ip.length = NETWORK16(NETWORK16(ip.length) + sizeof(hop));
	hop.option = *option;
	surround(&hop);
	bpf_skb_store_bytes(skb, ETHERNET, &ip, sizeof(ip), 0);
	bpf_skb_store_bytes(skb, ETHERNET + IPV6, &hop, sizeof(hop), 0);
	return 1;
}

/* The part of a connection's full frames that is payload. */
ALWAYS_INLINE u32 payload_of(struct tcp_sock *tp, const struct key *key)
{
	u32 mss = tp->mss_cache, network = is_ipv4(key->remote) ? IPV4 : IPV6;

	if (!mss || mss > 65535)
		return 0;
	return (mss << 16) / (mss + tp->tcp_header_len + network + ETHERNET);
}
