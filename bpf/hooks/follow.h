/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that follow the command that is watched, and tell what it waits for. */
#ifndef CACHETOP_HOOKS_FOLLOW_H
#define CACHETOP_HOOKS_FOLLOW_H

#include "../wait.h"
#include "attach.h"

SEC("?tp_btf/sched_process_fork")
int fork_btf(u64 *ctx)
{
	on_fork((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

/* wake_up_new_task(task): its parent is the running one. */
SEC("?kprobe.multi/wake_up_new_task")
int fork_multi(struct pt_regs *ctx)
{
	on_fork(bpf_get_current_task_btf(), ARGUMENT(ctx, 1, struct task_struct));
	return 0;
}

SEC("?tp_btf/sched_process_free")
int free_btf(u64 *ctx)
{
	on_free((void *)ctx[0]);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int end_btf(u64 *ctx)
{
	on_end((void *)ctx[0]);
	return 0;
}

SEC("?tp/sched/sched_process_exit")
int end_tp(void *ctx)
{
	on_end((void *)bpf_get_current_task());
	return 0;
}

SEC("?tp_btf/sched_switch")
int switch_btf(u64 *ctx)
{
	on_switch(ctx[0] & 1, (void *)ctx[1], (void *)ctx[2], number(ctx, 2));
	return 0;
}

SEC("?tp/writeback/balance_dirty_pages")
int throttle_tp(struct trace_event_raw_balance_dirty_pages *ctx)
{
	on_throttle(ctx->pause);
	return 0;
}

SEC("?fentry/d_alloc_parallel")
int lookup_fentry(u64 *ctx)
{
	begin_lookup(number(ctx, 0));
	return 0;
}

SEC("?kprobe.multi/d_alloc_parallel")
int lookup_multi(struct pt_regs *ctx)
{
	begin_lookup(PT_REGS_PARM1(ctx));
	return 0;
}

/* d_splice_alias(inode, dentry), d_add(dentry, inode) */
SEC("?fentry/d_splice_alias")
int answer_fentry(u64 *ctx)
{
	end_lookup((void *)ctx[1]);
	return 0;
}

SEC("?fentry/d_add")
int answer_add_fentry(u64 *ctx)
{
	end_lookup((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/d_splice_alias")
int answer_multi(struct pt_regs *ctx)
{
	end_lookup((void *)PT_REGS_PARM2(ctx));
	return 0;
}

SEC("?kprobe.multi/d_add")
int answer_add_multi(struct pt_regs *ctx)
{
	end_lookup((void *)PT_REGS_PARM1(ctx));
	return 0;
}

#endif
