/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that put requests together from tracepoints only. */
#ifndef CACHETOP_HOOKS_CALLS_H
#define CACHETOP_HOOKS_CALLS_H

#include "../calls.h"
#include "../process.h"
#include "attach.h"

SEC("?tp_btf/mm_filemap_get_pages")
int get_pages_btf(u64 *ctx)
{
	on_get_pages(ctx);
	return 0;
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_in_call_btf(u64 *ctx)
{
	on_add_in_call((void *)ctx[0], folio_order_of((void *)ctx[0]));
	return 0;
}

SEC("?tp_btf/io_uring_submit_req")
int uring_btf(u64 *ctx)
{
	on_uring_submit((void *)ctx[0]);
	return 0;
}

SEC("?tp_btf/mm_filemap_fault")
int fault_btf(u64 *ctx)
{
	on_fault_in_call(ctx);
	return 0;
}

SEC("?tp_btf/mm_filemap_map_pages")
int map_pages_btf(u64 *ctx)
{
	on_map_pages_in_call(ctx);
	return 0;
}

struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;

static long settle_if_ended(void *map, u32 *n, struct call *c, void *unused)
{
	struct task_struct *task;
	bool ended = true;
	u32 tid;

	if (*n >= calls_made)
		return 1; /* nobody has had these */
	/* First of all: what comes from here on is noted again, also by another thread that gets this place. */
	__sync_lock_test_and_set(&c->noted, 0);
	tid = *(volatile u32 *)&c->tid;
	if (!tid)
		return 0;
	if (c->state != PENDING && c->faults.state != FAULT_OPEN && c->faults.around_state != FAULT_OPEN)
		return 0;
	task = bpf_task_from_pid(tid);
	/* Its thread may have ended meanwhile, and the next one be in a call. */
	if (task && *(volatile u32 *)&c->tid == tid) {
		settle_faults_of(c, task);
		ended = !c->by_syscall || task->ioac.syscr != c->syscr;
	}
	if (task)
		bpf_task_release(task);
	if (ended && c->state == PENDING && *(volatile u32 *)&c->tid == tid)
		end_call(c);
	if (c->state == PENDING || c->faults.state == FAULT_OPEN || c->faults.around_state == FAULT_OPEN)
		note_unsettled(c);
	return 0;
}

struct settling {
	u64 next;
	u64 noted;
	bool walk; /* the ring does not tell all */
};

static long settle_noted(u32 i, struct settling *s)
{
	u64 entry = *(volatile u64 *)&unsettled[s->next & (UNSETTLED - 1)];
	s32 later = (u32)(entry >> 32) - (u32)(s->next + 1);
	u32 n = entry;
	struct call *c;

	if (later) {
		/* Written over, or about to be written: the tick after this one begins there. */
		if (later > 0)
			s->next = s->noted;
		s->walk = true;
		return 1;
	}
	s->next++;
	c = call_at(n);
	if (c)
		settle_if_ended(&calls, &n, c, 0);
	return 0;
}

/* Run by the monitor before each sample. */
SEC("?syscall")
int settle_pending(void *ctx)
{
	struct settling s = {.next = unsettled_looked_at};

	s.noted = *(volatile u64 *)&unsettled_noted;
	if (s.noted - s.next <= UNSETTLED) {
		bpf_loop(s.noted - s.next, settle_noted, &s, 0);
	} else {
		s.next = s.noted;
		s.walk = true;
	}
	if (s.walk)
		bpf_for_each_map_elem(&calls, settle_if_ended, 0, 0);
	unsettled_looked_at = s.next;
	return 0;
}

/* The thread reads no more: its last request has ended. Without a task, its faults are not told apart any more. */
static __always_inline void end_calls_of(u64 address, struct task_struct *task)
{
	u32 *n = bpf_map_lookup_elem(&call_numbers, &address);
	struct call *c = n ? call_at(*n) : 0;

	if (!c)
		return;
	if (task)
		settle_faults_of(c, task);
	end_call(c);
	flush_extents(c);
	forget_call(c, address);
}

/* As rename_btf. A thread that renames itself reads nothing meanwhile: what it has read, it has read under the old name. */
SEC("?tp_btf/task_rename")
int rename_in_call_btf(u64 *ctx)
{
	u64 task = number(ctx, 0);
	u32 *n = bpf_map_lookup_elem(&call_numbers, &task);
	struct call *c = n ? call_at(*n) : 0;

	if (c && task == bpf_get_current_task()) {
		end_older_call(c, ~0ULL);
		end_call(c);
	}
	on_rename(task, (void *)number(ctx, 1));
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int exit_in_call_btf(u64 *ctx)
{
	end_calls_of(bpf_get_current_task(), bpf_get_current_task_btf());
	on_exit();
	return 0;
}

/* As gone_btf: what came after the exit. */
SEC("?tp_btf/sched_process_free")
int gone_in_call_btf(u64 *ctx)
{
	u64 address = number(ctx, 0);

	end_calls_of(address, (void *)ctx[0]);
	forget_task(address);
	return 0;
}

/* As born_btf. */
SEC("?tp_btf/sched_process_fork")
int born_in_call_btf(u64 *ctx)
{
	u64 address = number(ctx, 1);

	end_calls_of(address, 0);
	forget_task(address);
	return 0;
}

#endif
