/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What the programs of `pace.c` keep: settings, flows, counters. `pacer.py` repeats these layouts.
 */
#pragma once
#include "../../../hosts/kernel.h"

/* Links that a flow can be told of. */
#define LINKS 8
#define CGROUPS 8
#define CGROUP_DEPTH 16

/* A pacing rate's last bits, in bytes/s. By them sockets are known whose limit was set here: see `pacer.py`. */
#define MARK_BITS 31
#define MARK 21

/* Of HTB's classes: the upper half of a socket's priority. */
#define MAJOR 0x7467

enum direction { OPENED = 1, ACCEPTED = 2 };
enum state { ASKING = 1, PACED = 2, SILENT = 3 };
enum counter {
	C_MARKED,
	C_UNMARKED,
	C_TRACES,
	C_NOTICES,
	C_UPDATES,
	C_STALE,
	C_MALFORMED,
	C_BAD_VERSION,
	C_BAD_CHECK,
	C_NOT_OURS,
	C_TOO_OFTEN,
	C_OUT_OF_BOUNDS,
	C_FULL,
	C_NO_ROOM,
	C_TOO_MANY_LINKS,
	C_SILENT,
	C_ADOPTED,
	C_NOT_SET,
	C_NO_CLASS,
	C_COUNT
};

struct settings {
	/* Of the network namespace. */
	u64 cookie;
	u64 keys[2];
	/* Nanoseconds. */
	u64 refresh, timeout;
	/* Those that existing sockets are chosen by; 0: none. */
	u64 cgroups[CGROUPS];
	/* Bytes/s of payload. */
	u32 least, most;
	u32 weight;
	/* Changes that a flow takes, per second. */
	u32 changes;
	/* Local ports that connections are opened from. */
	u32 first_port, last_port;
	u8 keyed, signing;
	/* Bits of `enum direction`. */
	u8 directions;
	u8 any_port, any_peer, any_cgroup;
	/* Takes flows that exist; tells switches what applications leave; lifts all limits that were set here. */
	u8 adopt, lends, lift;
	/* Flows are limited by classes of HTB, which user space gives their rates. */
	u8 classes;
	/* `visit` looks which flows stay: those in a chosen cgroup, which have this number then. */
	u8 sorts, unused;
	u32 sorting;
};

struct key {
	/* In network order; of IPv4 in ::ffff:0:0/96. */
	u32 local[4], remote[4];
	u16 local_port, remote_port;
};

/* What a link gives for all of the weights of its flows. */
struct share {
	u32 kbps, weight;
	u8 link, sequence;
	u8 known, noticed, left, unused[3];
	/* When it was said, and the first question since that the link has not answered; 0: there is none. */
	u64 at, asked;
};

/* What a link's last notice for all flows of this host says. */
struct news {
	/* See `said_of` in order.h. */
	u64 said;
	/* When it came; 0: there was none. Written after what it says. */
	u64 at;
};

struct flow {
	struct bpf_spin_lock lock;
	u32 weight;
	/* Of frames; 0: nothing is known. */
	u32 kbps;
	/* Payload in bytes/s: what the socket is to be limited to, and what it is; 0: not at all. */
	u32 wanted, set;
	/* Part of frames that is payload, of 65536; 0: not known yet. */
	u32 payload;
	/* What switches were told last. */
	u32 told_kbps;
	u8 told_link;
	/* The link that the rate is from. */
	u8 link;
	u8 state, established, syns, direction;
	/* An UPDATE is to be sent. */
	u8 updates;
	/* That no switch has answered, of a flow that has heard of none. */
	u8 questions;
	u32 changes;
	/* Of TCP, when it was asked for last. */
	u32 sent;
	/* What the application takes, in kbit/s of frames, if that is clearly less than what links give; 0: all. */
	u32 limit;
	/* Of HTB; 0: none. */
	u32 class;
	/* Of the last time that flows were sorted, or when it began. */
	u32 sorting;
	/* Nanoseconds of the monotonic clock. `asked`: the last question; `asking`: the first that had no answer. */
	u64 opened, heard, asked, asking, second;
	/* When it was measured last, and the bytes that had been acknowledged then. */
	u64 measured, acked;
	/* Since when it takes less; 0: it does not. */
	u64 idle;
	struct share shares[LINKS];
};

struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct settings);
} settings SECTION(".maps");

struct {
	UINT(type, HASH);
	UINT(map_flags, NO_PREALLOC);
	/* The loader gives it another. */
	UINT(max_entries, 65536);
	TYPE(key, struct key);
	TYPE(value, struct flow);
} flows SECTION(".maps");

/* Ports of the peers of opened connections, own ports of accepted ones. */
struct {
	UINT(type, HASH);
	UINT(max_entries, 65536);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, u32);
	TYPE(value, u32);
} ports SECTION(".maps");

struct prefix {
	u32 length, address[4];
};

struct {
	UINT(type, LPM);
	UINT(max_entries, 65536);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u32);
} peers SECTION(".maps");

struct {
	UINT(type, ARRAY);
	UINT(max_entries, C_COUNT);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SECTION(".maps");

/* By the link's number. */
struct {
	UINT(type, ARRAY);
	UINT(max_entries, 256);
	TYPE(key, u32);
	TYPE(value, struct news);
} link_news SECTION(".maps");

/* Classes that no flow has. */
struct {
	UINT(type, QUEUE);
	UINT(max_entries, 4096);
	TYPE(value, u32);
} free_classes SECTION(".maps");

/* Whether user space has been told to start `visit`. */
struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} woken SECTION(".maps");

struct {
	UINT(type, RING);
	UINT(max_entries, 4096);
} wakes SECTION(".maps");
