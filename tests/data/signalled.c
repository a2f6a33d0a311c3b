/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
 *
 * A congestion control for a test: its window is what the last option says that a Signal shim handed it, in packets.
 */
#include "../../python/tidegate/hosts/signal.h"

SECTION("struct_ops/signalled_ssthresh") u32 signalled_ssthresh(u64 *arguments)
{
	return ((struct tcp_sock *)arguments[0])->snd_ssthresh;
}

SECTION("struct_ops/signalled_control") void signalled_control(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct signal *told = bpf_sk_storage_get(&signals, tp, 0, 0);

	if (told && told->count && told->kind == 253 && told->length == 2)
		tp->snd_cwnd = told->data[0] << 8 | told->data[1];
}

SECTION("struct_ops/signalled_undo") u32 signalled_undo(u64 *arguments)
{
	return ((struct tcp_sock *)arguments[0])->snd_cwnd;
}

SECTION(".struct_ops") struct tcp_congestion_ops dctcp = {
	.ssthresh = (void *)signalled_ssthresh,
	.cong_control = (void *)signalled_control,
	.undo_cwnd = (void *)signalled_undo,
	.name = "dctcp_XXXXXX",
};

char terms[] SECTION("license") = "GPL";
