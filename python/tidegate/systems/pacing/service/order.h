/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What is kept of a notice for all flows, and which of two notices is the later one. Arithmetic that needs no kernel: a test compiles it for
 * this machine. Times are nanoseconds.
 */
#pragma once
#include "../../../hosts/words.h"

/* So long after a link's last notice its sequence number says nothing of the order. */
#define ORDERED 1000000000ull
/* By then a switch has answered: it walks a list that nothing has changed in once in 1.05 s. */
#define ANSWERED 2000000000ull

/* Rate and weight as the option has them, and the sequence number behind them: written, and read, at once. */
ALWAYS_INLINE u64 said_of(u16 rate, u16 weight, u8 sequence)
{
	return rate | (u64)weight << 16 | (u64)sequence << 32;
}

ALWAYS_INLINE u32 rate_said(u64 said)
{
	return said & 0xffff;
}

ALWAYS_INLINE u32 weight_said(u64 said)
{
	return said >> 16 & 0xffff;
}

ALWAYS_INLINE u8 sequence_said(u64 said)
{
	return said >> 32;
}

/* Whether a sequence number is from before another. */
ALWAYS_INLINE u8 is_earlier(u32 sequence, u32 other)
{
	return (u8)(sequence - other) >= 128;
}

/* The same of a link that is quiet at times: what came long before says nothing. */
ALWAYS_INLINE u8 is_before(u32 sequence, u32 other, u64 apart)
{
	return is_earlier(sequence, other) && apart < ORDERED;
}

/* Whether a link that was asked at a time, and has not answered since, may have begun to count again: a switch that was restarted counts from
 * 0. `asked` is 0 where it owes no answer. */
ALWAYS_INLINE u8 may_count_anew(u64 asked, u64 now, u64 refresh)
{
	return asked && now - asked >= (refresh > ANSWERED ? refresh : ANSWERED);
}
