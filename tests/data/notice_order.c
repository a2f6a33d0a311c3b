/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What the pacing agent keeps of notices, for this machine.
 */
#include "../../python/tidegate/systems/pacing/service/order.h"

u64 kept(u16 rate, u16 weight, u8 sequence)
{
	return said_of(rate, weight, sequence);
}

u32 kept_rate(u64 said)
{
	return rate_said(said);
}

u32 kept_weight(u64 said)
{
	return weight_said(said);
}

u8 kept_sequence(u64 said)
{
	return sequence_said(said);
}

u8 comes_before(u32 sequence, u32 other, u64 apart)
{
	return is_before(sequence, other, apart);
}

u8 counts_anew(u64 asked, u64 now, u64 refresh)
{
	return may_count_anew(asked, now, refresh);
}
