/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The arithmetic of the BPF congestion control `stamp`, for this machine: a test compares it with the law in real numbers.
 */
#include "../../python/tidegate/hosts/stamp_law.h"

unsigned long size_of_parameters(void)
{
	return sizeof(struct parameters);
}

s64 law_stamp(const struct parameters *p, const u8 *data, u32 length)
{
	return stamp_of(&p->stamp, data, length);
}

void law_update(const struct parameters *p, struct law *law, u64 stamp, u8 commit, u64 rtt)
{
	update(p, law, stamp, commit, rtt);
}

void law_halve(struct law *law, u32 out, u32 payload, u64 rtt)
{
	halve(law, out, payload, rtt);
}

void law_grow(const struct parameters *p, struct law *law, u32 payload, u64 rtt)
{
	grow(p, law, payload, rtt);
}

u32 law_window(const struct parameters *p, u64 rate, u64 rtt, u32 payload)
{
	return packets_of(p, bytes_of(rate, rtt), payload);
}

u64 law_pace(const struct parameters *p, u64 rate, u32 payload)
{
	return payload_rate(p, rate, payload);
}
