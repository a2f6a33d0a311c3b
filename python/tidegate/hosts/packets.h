/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * Headers and constants of the programs at interfaces and sockets: `agent.c`, and pacing's `pace.c`.
 */
#pragma once
#include "kernel.h"

struct ip_header {
	u8 version_length, tos;
	u16 length, id, fragment;
	u8 ttl, protocol;
	u16 checksum;
	u32 source, target;
};

struct ip6_header {
	u8 version_class, class_label;
	u16 label, length;
	u8 next, hops;
	u32 source[4], target[4];
};

struct tcp_header {
	u16 source, target;
	u32 seq, ack;
	u8 offset, flags;
	u16 window, checksum, urgent;
};

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_TCP 6
#define PROTOCOL_HOP_BY_HOP 0
#define FRAGMENT_OFFSET 0x1fff
#define FIN 1
#define SYN 2
#define RST 4
#define ACK 16

#define AF_INET 2
#define AF_INET6 10
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define UNLIMITED 0xffffffffu
#define TCP_CLOSE 7

#define NEXT (-1)
#define DROP 2
#define BETWEEN_IP_AND_TCP 0
#define SAME_SEGMENTS 1
#define THIS_NAMESPACE (-1)

#define NETWORK16(value) __builtin_bswap16(value)
#define NETWORK32(value) __builtin_bswap32(value)
