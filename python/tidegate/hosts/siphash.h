/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The check of an option (`Check` in shims.py): HalfSipHash-2-4 of words of 32 bits.
 */
#pragma once
#include "words.h"

/* With addresses of IPv4, and of IPv6. */
#define CHECKED_WORDS 6
#define CHECKED_WORDS6 12
#define LEFT(word, by) ((word) << (by) | (word) >> (32 - (by)))

struct sip {
	u32 v0, v1, v2, v3;
};

ALWAYS_INLINE void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = LEFT(s->v1, 5) ^ s->v0;
	s->v0 = LEFT(s->v0, 16);
	s->v2 += s->v3;
	s->v3 = LEFT(s->v3, 8) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = LEFT(s->v3, 7) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = LEFT(s->v1, 13) ^ s->v2;
	s->v2 = LEFT(s->v2, 16);
}

ALWAYS_INLINE void sip_word(struct sip *s, u32 word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

/* 24 bits. */
ALWAYS_INLINE u32 check_of(u64 key, const u32 *words, u32 count)
{
	u32 high = key >> 32, low = key;
	struct sip s = {high, low, high ^ 0x6c796765, low ^ 0x74656462};

	for (u32 at = 0; at < count; at++)
		sip_word(&s, words[at]);
	sip_word(&s, 4 * count << 24);
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return (s.v1 ^ s.v3) & 0xffffff;
}
