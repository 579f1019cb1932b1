/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The program that sees read requests being made. */
#ifndef CACHETOP_HOOKS_TRIED_H
#define CACHETOP_HOOKS_TRIED_H

#include "../tried.h"

SEC("?tp/raw_syscalls/sys_enter")
int tried_tp(struct trace_event_raw_sys_enter *ctx)
{
	on_tried(ctx->id, ctx->args[0], ctx->args[1], ctx->args[2], ctx->args[3]);
	return 0;
}

#endif
