/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that put requests together from tracepoints only. */
#ifndef CACHETOP_HOOKS_CALLS_H
#define CACHETOP_HOOKS_CALLS_H

#include "../process.h"
#include "../quick.h"
#include "attach.h"

SEC("?tp_btf/mm_filemap_get_pages")
int get_pages_btf(u64 *ctx)
{
	if (!likely(quick_read(ctx)))
		on_get_pages(ctx);
	return 0;
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_in_call_btf(u64 *ctx)
{
	on_add_in_call((void *)ctx[0], order_of_argument((void *)ctx[0]));
	return 0;
}

SEC("?tp_btf/writeback_dirty_folio")
int dirty_in_call_btf(u64 *ctx)
{
	written_in_call((void *)ctx[0]);
	on_dirty((void *)ctx[0], order_of_argument((void *)ctx[0]), ARGUMENT_OF_BTF, BITS);
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

/* What the tick looks at: a copy of a call that its thread may be changing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call);
} looked_at SEC(".maps");

/* Whether something of a call still waits. */
static __always_inline bool waits(struct call *c)
{
	return is_pending(c) || is_open(*(volatile u64 *)&c->faults.state) ||
	       is_open(*(volatile u64 *)&c->faults.around_state);
}

struct task_struct___sleep {
	unsigned int in_iowait : 1;
} __attribute__((preserve_access_index));

/*
 * Whether a thread is in the middle of a request that no number tells from the next: of a kernel thread, or of io_uring.
 * While it waits for a device it may add more pages. Where it runs, nobody knows: then the request is taken to have ended.
 */
static __always_inline bool in_request(struct task_struct *task)
{
	struct task_struct___sleep *t = (void *)task;

	return BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait);
}

/*
 * Counts what has ended of a call whose thread may run on (pending.h): first which request and which fault it is, then how
 * far the thread is, then what it is about; and what is counted is the same as it was at first, or nothing.
 */
static __always_inline void settle_for_thread(struct call *c, struct call *copy)
{
	u64 request = *(volatile u64 *)&c->state, fault = *(volatile u64 *)&c->faults.state;
	u64 around = *(volatile u64 *)&c->faults.around_state, syscr = 0, served = 0;
	struct task_struct *task = bpf_task_from_pid(*(volatile u32 *)&c->tid);
	bool gone = !task, busy = false;
	struct account a;

	if (task) {
		syscr = *(volatile u64 *)&task->ioac.syscr;
		served = served_to(task);
		busy = !*(volatile u16 *)&c->by_syscall && in_request(task);
		bpf_task_release(task);
	}
	asm volatile("" ::: "memory");
	if (bpf_probe_read_kernel(copy, __builtin_offsetof(struct call, extent), c))
		return;
	if (copy->extents && bpf_probe_read_kernel(copy->extent, sizeof(copy->extent), c->extent))
		return;
	copy->faults.state = fault;
	copy->faults.around_state = around;
	if (!gone && account_call(&a, copy))
		settle_faults(&a, &c->faults, &copy->faults, served);
	if ((request & CALL_STATE) != PENDING || (copy->by_syscall ? !gone && copy->syscr == syscr : busy))
		return;
	if (__sync_val_compare_and_swap(&c->state, request, request - PENDING + TAKEN) != request)
		return;
	own_rest(copy);
	settle(copy);
}

static long settle_if_ended(void *map, u32 *n, struct call *c, void *unused)
{
	struct call *copy;
	u32 zero = 0;

	if (*n >= calls_made)
		return 1; /* nobody has had these */
	/* First of all: what comes from here on is noted again, also by another thread that gets this place. */
	__sync_lock_test_and_set(&c->noted, 0);
	if (!*(volatile u32 *)&c->tid || !waits(c))
		return 0;
	copy = bpf_map_lookup_elem(&looked_at, &zero);
	if (copy)
		settle_for_thread(c, copy);
	if (waits(c))
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

/*
 * A thread that renames itself reads nothing meanwhile, and faults on nothing: what it has read and mapped, it has under the old
 * name, in whose rows of files that is.
 */
static __always_inline void end_own_call(void)
{
	u64 task = bpf_get_current_task();
	u32 *n = bpf_map_lookup_elem(&call_numbers, &task);
	struct call *c = n ? call_at(*n) : 0;

	if (!c)
		return;
	if (knows_running())
		settle_faults_of(c, bpf_get_current_task_btf());
	end_call(c);
}

/* As rename_btf. */
SEC("?tp_btf/task_rename")
int rename_in_call_btf(u64 *ctx)
{
	u64 task = number(ctx, 0);

	if (task == bpf_get_current_task())
		end_own_call();
	on_rename(task, (void *)number(ctx, 1));
	return 0;
}

/* As rename_tp. */
SEC("?tp/task/task_rename")
int rename_in_call_tp(struct trace_event_raw_task_rename *ctx)
{
	if (ctx->pid == (int)bpf_get_current_pid_tgid())
		end_own_call();
	on_rename_of(ctx->pid, ctx->newcomm);
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
