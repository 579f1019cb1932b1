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
	on_get_pages((void *)ctx[0], number(ctx, 0), ctx[1], ctx[2]);
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
	on_fault_in_call(number(ctx, 0), ctx[1]);
	return 0;
}

SEC("?tp_btf/mm_filemap_map_pages")
int map_pages_btf(u64 *ctx)
{
	on_map_pages_in_call(number(ctx, 0), ctx[1], ctx[2]);
	return 0;
}

struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;

static long settle_if_ended(void *map, u32 *tid, struct call *c, void *unused)
{
	struct task_struct *task;
	bool ended = true;

	if (c->tid != *tid)
		return 0;
	/* What comes from here on is noted again. */
	__sync_lock_test_and_set(&c->noted, 0);
	if (c->state != PENDING && c->faults.state != FAULT_OPEN && c->faults.around_state != FAULT_OPEN)
		return 0;
	task = bpf_task_from_pid(*tid);
	if (task) {
		settle_faults_of(c, task);
		ended = !c->by_syscall || task->ioac.syscr != c->syscr;
		bpf_task_release(task);
	}
	if (ended && c->state == PENDING)
		end_call(c);
	if (c->state == PENDING || c->faults.state == FAULT_OPEN || c->faults.around_state == FAULT_OPEN)
		note_unsettled(c, *tid);
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
	u32 tid = entry;
	struct call *c;

	if (later) {
		/* Written over, or about to be written: the tick after this one begins there. */
		if (later > 0)
			s->next = s->noted;
		s->walk = true;
		return 1;
	}
	s->next++;
	c = bpf_map_lookup_elem(&calls, &tid);
	if (c)
		settle_if_ended(&calls, &tid, c, 0);
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

SEC("?tp_btf/sched_process_exit")
int exit_in_call_btf(u64 *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calls, &tid);

	if (c) {
		settle_faults_of(c, bpf_get_current_task_btf());
		end_call(c);
		flush_extents(c);
		bpf_map_delete_elem(&calls, &tid);
	}
	on_exit();
	return 0;
}

#endif
