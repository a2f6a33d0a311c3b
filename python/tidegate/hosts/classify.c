/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * A classifier of an HTB qdisc: the class of a packet by its flow. `linux_router.py` loads it and fills the map; a flow that is not in it
 * is left to the default class. Of IPv6's extension headers it follows hop-by-hop options, one header; behind others a flow is not seen.
 * It also keeps the length of the longest frame: segments that are merged (GRO, GSO) are one.
 */
#include "packets.h"

#define ETHERNET_LENGTH 14
#define TAG_LENGTH 4
#define PROTOCOL_UDP 17
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_SERVICE_VLAN 0x88a8
/* What a classifier returns for no class of its own. */
#define UNKNOWN 0

/* IPv4 addresses as IPv6 has them (RFC 4291, section 2.5.5.2). All in network order. */
struct flow {
	u32 source[4], target[4];
	u16 source_port, target_port;
	u8 protocol, zero[3];
};

struct {
	TYPE(key, struct flow);
	TYPE(value, u32);
	UINT(type, HASH);
	UINT(max_entries, 65536);
	UINT(map_flags, NO_PREALLOC);
} classes SECTION(".maps");

struct {
	TYPE(key, u32);
	TYPE(value, u32);
	UINT(type, ARRAY);
	UINT(max_entries, 1);
} longest SECTION(".maps");

SECTION("classifier")
int classify(struct packet *packet)
{
	struct flow flow = {};
	u32 at = ETHERNET_LENGTH, first = 0;
	u16 kind, ports[2] = {};
	u32 *found;

	found = bpf_map_lookup_elem(&longest, &first);
	if (found && *found < packet->len)
		*found = packet->len;

	if (bpf_skb_load_bytes(packet, ETHERNET_LENGTH - 2, &kind, sizeof(kind)))
		return UNKNOWN;
	if (kind == NETWORK16(ETHERTYPE_VLAN) || kind == NETWORK16(ETHERTYPE_SERVICE_VLAN)) {
		at += TAG_LENGTH;
		if (bpf_skb_load_bytes(packet, at - 2, &kind, sizeof(kind)))
			return UNKNOWN;
	}
	if (kind == NETWORK16(ETHERTYPE_IPV4)) {
		struct ip_header ip;

		if (bpf_skb_load_bytes(packet, at, &ip, sizeof(ip)))
			return UNKNOWN;
		flow.source[2] = flow.target[2] = NETWORK32(0xffff);
		flow.source[3] = ip.source;
		flow.target[3] = ip.target;
		flow.protocol = ip.protocol;
		at += (ip.version_length & 15) * 4;
		/* A fragment is of the flow without ports. */
		if (ip.fragment & NETWORK16(FRAGMENT_OFFSET | 0x2000))
			flow.protocol = 0;
	} else if (kind == NETWORK16(ETHERTYPE_IPV6)) {
		struct ip6_header ip;

		if (bpf_skb_load_bytes(packet, at, &ip, sizeof(ip)))
			return UNKNOWN;
		__builtin_memcpy(flow.source, ip.source, sizeof(flow.source));
		__builtin_memcpy(flow.target, ip.target, sizeof(flow.target));
		flow.protocol = ip.next;
		at += sizeof(ip);
		if (ip.next == PROTOCOL_HOP_BY_HOP) {
			u8 hop[2];

			if (bpf_skb_load_bytes(packet, at, hop, sizeof(hop)))
				return UNKNOWN;
			flow.protocol = hop[0];
			at += 8 * (hop[1] + 1);
		}
	} else {
		return UNKNOWN;
	}
	if (flow.protocol == PROTOCOL_TCP || flow.protocol == PROTOCOL_UDP) {
		if (bpf_skb_load_bytes(packet, at, ports, sizeof(ports)))
			return UNKNOWN;
		flow.source_port = ports[0];
		flow.target_port = ports[1];
	}
	found = bpf_map_lookup_elem(&classes, &flow);
	return found ? (int)*found : UNKNOWN;
}
