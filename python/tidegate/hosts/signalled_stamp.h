/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * The stamp that an ACK has brought, as the congestion controls `stamp` and `timely` take it from a `Signal` shim.
 */
#pragma once
#include "signal.h"
#include "stamp_field.h"

/* The stamp of this ACK, once; -1: it has none. `told`: signals that have been read. */
ALWAYS_INLINE s64 taken(const struct field *f, struct sock *sk, u32 *told)
{
	struct signal *last = bpf_sk_storage_get(&signals, sk, 0, 0);
	u32 count;

	if (!last)
		return -1;
	count = last->count;
	if (count == *told)
		return -1;
	*told = count;
	return last->kind == f->kind ? stamp_of(f, last->data, last->length) : -1;
}
