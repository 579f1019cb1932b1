/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see threads get another name, user or cgroup, or end. */
#ifndef CACHETOP_HOOKS_THREADS_H
#define CACHETOP_HOOKS_THREADS_H

#include "../process.h"
#include "attach.h"
#include "exit.h"

SEC("?tp_btf/task_rename")
int rename_btf(u64 *ctx)
{
	on_rename(number(ctx, 0), (void *)number(ctx, 1));
	return 0;
}

SEC("?tp/task/task_rename")
int rename_tp(struct trace_event_raw_task_rename *ctx)
{
	on_rename_of(ctx->pid, ctx->newcomm);
	return 0;
}

SEC("?fentry/commit_creds")
int user_fentry(u64 *ctx)
{
	on_user((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/commit_creds")
int user_multi(struct pt_regs *ctx)
{
	on_user((void *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?tp/cgroup/cgroup_attach_task")
int cgroup_tp(struct trace_event_raw_cgroup_migrate *ctx)
{
	on_cgroup(ctx->pid);
	return 0;
}

/* A row made after the exit, for what closing files does, goes with its thread. */
SEC("?tp_btf/sched_process_free")
int gone_btf(u64 *ctx)
{
	forget_task(number(ctx, 0));
	return 0;
}

/* Should its end not have been seen: who begins here is somebody else. */
SEC("?tp_btf/sched_process_fork")
int born_btf(u64 *ctx)
{
	forget_task(number(ctx, 1));
	return 0;
}

#endif
