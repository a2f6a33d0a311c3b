/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The arithmetic of the BPF congestion control `timely`, for this machine: a test compares it with the law in real numbers.
 */
#include "../../python/tidegate/hosts/timely_law.h"

unsigned long size_of_parameters(void)
{
	return sizeof(struct parameters);
}

s64 law_stamp(const struct parameters *p, const u8 *data, u32 length)
{
	return stamp_of(&p->stamp, data, length);
}

void law_update(const struct parameters *p, struct law *law, u64 signal, u64 rtt, u64 since, u64 least)
{
	update(p, law, signal, rtt, since, least);
}

u32 law_window(u64 rate, u64 rtt, u32 payload)
{
	return window_of(rate, rtt, payload);
}

u32 law_wide_window(u64 rate, u64 rtt, u32 payload)
{
	return wide_window(rate, rtt, payload);
}
