/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The programs that see read requests being made. */
#ifndef CACHETOP_HOOKS_TRIED_H
#define CACHETOP_HOOKS_TRIED_H

#include "../tried.h"

SEC("?tp_btf/sys_enter")
int tried_btf(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];

	on_tried(ctx[1], BPF_CORE_READ(regs, CALL_ARG0), BPF_CORE_READ(regs, CALL_ARG1),
		 BPF_CORE_READ(regs, CALL_ARG2), BPF_CORE_READ(regs, CALL_ARG3));
	return 0;
}

SEC("?tp/raw_syscalls/sys_enter")
int tried_tp(struct trace_event_raw_sys_enter *ctx)
{
	on_tried(ctx->id, ctx->args[0], ctx->args[1], ctx->args[2], ctx->args[3]);
	return 0;
}

#endif
