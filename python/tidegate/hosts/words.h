/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * Types and arithmetic of the BPF programs that need no kernel: tests compile what includes only this for this machine.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef long long s64;
typedef unsigned long long u64;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

ALWAYS_INLINE u32 larger(u32 a, u32 b)
{
	return a > b ? a : b;
}

#define NS_PER_S 1000000000ull

/* Bytes at a rate in bit/s over a time in nanoseconds. */
ALWAYS_INLINE u64 bytes_of(u64 rate, u64 time)
{
	return (rate >> 3) * time / NS_PER_S;
}
