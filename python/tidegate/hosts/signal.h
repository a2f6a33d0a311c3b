/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What the `Signal` shims of a host's agents hand to its congestion controls, for both sides. docs/host-agents.md promises this layout.
 */
#pragma once
#include "kernel.h"

/* The last option that a `Signal` shim names. */
struct signal {
	/* When it came, as bpf_ktime_get_ns() has it. */
	u64 time;
	/* How many have come. */
	u32 count;
	u8 kind, length;
	u8 data[38];
	u8 unused[4];
};

/* By socket; the loader gives a congestion control the map that the shims write. */
struct {
	UINT(type, SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, s32);
	TYPE(value, struct signal);
} signals SECTION(".maps");
