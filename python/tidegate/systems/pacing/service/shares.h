/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * What links give a flow, and the rate that follows.
 */
#pragma once
#include "frames.h"
#include "order.h"

/* Bytes/s of payload that a rate of frames is. The caller has the lock. */
ALWAYS_INLINE u32 payload_rate(const struct flow *f, const struct settings *s, u8 *clamped)
{
	u64 rate = (u64)f->kbps * 125 * f->payload >> 16;

	*clamped = 1;
	if (rate > s->most)
		rate = s->most;
	else if (rate < s->least)
		rate = s->least;
	else
		*clamped = 0;
	return (rate & ~(u64)MARK_BITS) | MARK;
}

/* The least of what the links give holds. The caller has the lock. Gives whether it was clamped. */
ALWAYS_INLINE u8 settle(struct flow *f, const struct settings *s)
{
	u64 least = 0;
	u8 stays = 0, found = 0, clamped = 0;

	for (int at = 0; at < LINKS; at++)
		stays |= f->shares[at].known && !f->shares[at].left;
	for (int at = 0; at < LINKS; at++) {
		struct share *share = &f->shares[at];
		u64 part;

		if (stays && share->left) {
			share->known = 0;
			share->left = 0;
		}
		if (!share->known)
			continue;
		/* A weight of 0 was refused before. */
		part = ((u64)share->kbps << 16) / (share->weight | !share->weight);
		if (!found || part < least) {
			least = part;
			f->link = share->link;
		}
		found = 1;
	}
	if (found) {
		u64 kbps = (least * f->weight) >> 16;

		f->kbps = kbps > 0x7fffffff ? 0x7fffffff : kbps;
		f->state = PACED;
		if (f->payload)
			f->wanted = payload_rate(f, s, &clamped);
	}
	return clamped;
}

/* After a change of what links give. The caller has the lock. Gives whether the rate was clamped. */
ALWAYS_INLINE u8 settle_and_tell(struct flow *f, const struct settings *s)
{
	u8 clamped = settle(f, s);
	u32 shares = 0;

	for (int at = 0; at < LINKS; at++)
		shares += f->shares[at].known;
	/* Links beside the one that limits it are to know; what differs by less than 1/512 is not told. */
	if (shares > 1) {
		u32 more = f->kbps > f->told_kbps ? f->kbps - f->told_kbps : f->told_kbps - f->kbps;

		if (f->link != f->told_link || more > f->told_kbps >> 9)
			f->updates = 1;
	}
	return clamped;
}

enum heard { TAKEN, OLD, NO_SHARE };

/* What a switch says of a link. */
ALWAYS_INLINE enum heard hear(struct flow *f, const struct settings *s, u8 is_notice, const struct option *option, u64 now,
			   u8 *clamped)
{
	u32 kbps = number(NETWORK16(option->rate)), weight = number(NETWORK16(option->weight));
	enum heard result = TAKEN;
	int found = -1, free = -1;

	bpf_spin_lock(&f->lock);
	for (int at = LINKS - 1; at >= 0; at--) {
		if (!f->shares[at].known)
			free = at;
		else if (f->shares[at].link == option->link)
			found = at;
	}
	if (found < 0 && kbps)
		found = free;
	if (found < 0) {
		/* One that it leaves, and has not known: it is so already. */
		result = kbps ? NO_SHARE : TAKEN;
		goto out;
	}
	/* The kernel's verifier does not know it. */
	if (found >= LINKS)
		goto out;
	struct share *share = &f->shares[found & (LINKS - 1)];

	if (!kbps) {
		share->left = 1;
		share->noticed = 0;
	} else {
		if (!share->known) {
			share->noticed = 0;
			share->known = 1;
			share->asked = 0;
		}
		if (is_notice) {
			if (share->noticed && is_earlier(option->sequence, share->sequence) &&
			    !may_count_anew(share->asked, now, s->refresh)) {
				result = OLD;
				goto out;
			}
			share->sequence = option->sequence;
			share->noticed = 1;
		}
		share->link = option->link;
		share->kbps = kbps;
		share->weight = weight;
		share->left = 0;
		share->at = now;
		share->asked = 0;
	}
	*clamped = settle_and_tell(f, s);
out:
	bpf_spin_unlock(&f->lock);
	return result;
}

/* A notice for all flows of this host. Each of them catches up with it at its next visit or round trip. */
ALWAYS_INLINE enum heard hear_for_all(const struct option *option, u64 now)
{
	u32 link = option->link;
	struct news *news = bpf_map_lookup_elem(&link_news, &link);

	if (!news || !option->rate)
		return NO_SHARE;
	if (news->at && is_before(option->sequence, sequence_said(news->said), now - news->at))
		return OLD;
	news->said = said_of(NETWORK16(option->rate), NETWORK16(option->weight), option->sequence);
	*(volatile u64 *)&news->at = now;
	return TAKEN;
}

/* Take what notices for all flows have said since the flow was told by itself. */
static __attribute__((noinline)) int catch_up(struct flow *f, const struct settings *s)
{
	u64 latest = 0;

	for (int at = 0; at < LINKS; at++) {
		struct share *share = &f->shares[at];
		u32 link = share->link;
		struct news *news;
		u64 came, said;
		u8 sequence;

		if (!share->known || share->left)
			continue;
		news = bpf_map_lookup_elem(&link_news, &link);
		if (!news)
			continue;
		came = *(volatile u64 *)&news->at;
		said = *(volatile u64 *)&news->said;
		if (came <= share->at)
			continue;
		sequence = sequence_said(said);
		bpf_spin_lock(&f->lock);
		if (sequence == share->sequence)
			share->asked = 0;
		/* One that has been told by itself knows better. */
		if (!share->noticed || (sequence != share->sequence && !is_before(sequence, share->sequence, came - share->at))) {
			share->kbps = number(rate_said(said));
			share->weight = number(weight_said(said));
			share->sequence = sequence;
			share->noticed = 1;
			share->asked = 0;
			latest = came;
		}
		share->at = came;
		bpf_spin_unlock(&f->lock);
	}
	if (!latest)
		return 0;
	bpf_spin_lock(&f->lock);
	settle_and_tell(f, s);
	bpf_spin_unlock(&f->lock);
	f->heard = latest;
	f->asking = 0;
	return 0;
}
