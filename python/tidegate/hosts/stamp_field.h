/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What switches have stamped on a packet, as the congestion controls `stamp` and `timely` read it: one value folded over the hops of a
 * path (crates/transport/src/cc/stamp_field.rs, but for vectors).
 */
#pragma once
#include "words.h"

/* A field that says more than this says this. */
#define MOST_STAMP (1ull << 30)

/* How to read one; the loader fills it in (`stamp_field.py`). A value is (steps * multiplier) >> shift, in the unit of the control. */
struct field {
	u32 multiplier, shift;
	u8 sum_of_squares, mantissa, kind, unused;
};

/* The whole part of the root, for squares below 2^63. Without branches: the kernel's verifier would go through each combination. */
ALWAYS_INLINE u64 root(u64 square)
{
	u64 found = 0;

	for (u32 step = 0; step < 32; step++) {
		u64 bit = 1ull << (62 - 2 * step), with = found + bit;
		/* All bits, if the difference is not negative. */
		u64 fits = ~(u64)((s64)(square - with) >> 63);

		square -= with & fits;
		found = (found >> 1) + (bit & fits);
	}
	return found;
}

/* The value of so many bytes; -1: nobody has stamped the field, or it is of another format. */
ALWAYS_INLINE s64 stamp_of(const struct field *f, const u8 *data, u32 length)
{
	u64 steps = 0;
	u8 state = 0;

	if (length < 2 || length > 5)
		return -1;
	for (u32 byte = 0; byte < 5; byte++) {
		if (byte + 1 < length)
			steps = steps << 8 | data[byte];
		else if (byte + 1 == length)
			state = data[byte];
	}
	/* Version, and the number of switches that have stamped. */
	if (state >> 6 || !(state & 63))
		return -1;
	if (f->sum_of_squares) {
		/* This root has 15 bits behind the point. */
		steps = (root(steps << 30) * f->multiplier) >> (f->shift & 63) >> 15;
		return steps < MOST_STAMP ? steps : MOST_STAMP;
	}
	if (f->mantissa && steps >> f->mantissa > 1) {
		u64 exponent = (steps >> f->mantissa) - 1;

		steps = (steps & ((1u << f->mantissa) - 1)) | 1u << f->mantissa;
		/* What does not fit 32 bits is cut. */
		steps = exponent + f->mantissa < 32 ? steps << exponent : 0xffffffff;
	}
	steps = (steps * f->multiplier) >> (f->shift & 63);
	return steps < MOST_STAMP ? steps : MOST_STAMP;
}
