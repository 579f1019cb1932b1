// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Thin wrappers: one inline body per event, a program for each way to attach it. Nothing is loaded unless the
 * plan (src/plan.rs) chooses it: every section name starts with '?'.
 *
 * Names end in the way they attach: _fentry/_fexit (BPF trampoline), _multi (kprobe.multi), _btf (BTF tracepoint),
 * _tp (classic tracepoint). _pages marks the twins for kernels without atomic
 * instructions that fetch (before 5.12).
 */
#include "calls.h"
#include "pages.h"
#include "process.h"
#include "request.h"

/* ---- requests, bracketed by functions ---- */

SEC("?fentry/filemap_read")
int read_fentry(u64 *ctx)
{
	enter_kiocb((void *)ctx[0], (void *)ctx[1], ctx[2], false);
	return 0;
}

SEC("?fexit/filemap_read")
int read_fexit(u64 *ctx)
{
	exit_read((void *)ctx[0], ctx[3], BITS);
	return 0;
}

SEC("?fexit/filemap_read")
int read_fexit_pages(u64 *ctx)
{
	exit_read((void *)ctx[0], ctx[3], PAGES);
	return 0;
}

SEC("?kprobe.multi/filemap_read")
int read_multi(struct pt_regs *ctx)
{
	enter_kiocb((void *)PT_REGS_PARM1(ctx), (void *)PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), false);
	return 0;
}

SEC("?kretprobe.multi/filemap_read")
int read_multi_return(struct pt_regs *ctx)
{
	exit_read(0, PT_REGS_RC(ctx), BITS);
	return 0;
}

SEC("?fentry/filemap_splice_read")
int splice_fentry(u64 *ctx)
{
	enter_splice((void *)ctx[0], (void *)ctx[1], (void *)ctx[2], ctx[3], false);
	return 0;
}

SEC("?fexit/filemap_splice_read")
int splice_fexit(u64 *ctx)
{
	exit_read((void *)ctx[1], ctx[5], BITS);
	return 0;
}

SEC("?kprobe.multi/filemap_splice_read")
int splice_multi(struct pt_regs *ctx)
{
	enter_splice((void *)PT_REGS_PARM1(ctx), (void *)PT_REGS_PARM2(ctx), (void *)PT_REGS_PARM3(ctx),
		     PT_REGS_PARM4(ctx), false);
	return 0;
}

SEC("?kretprobe.multi/filemap_splice_read")
int splice_multi_return(struct pt_regs *ctx)
{
	exit_read(0, PT_REGS_RC(ctx), BITS);
	return 0;
}

SEC("?fentry/shmem_file_read_iter")
int shmem_fentry(u64 *ctx)
{
	enter_kiocb((void *)ctx[0], (void *)ctx[1], 0, true);
	return 0;
}

SEC("?fexit/shmem_file_read_iter")
int shmem_fexit(u64 *ctx)
{
	exit_read((void *)ctx[0], ctx[2], BITS);
	return 0;
}

SEC("?fexit/shmem_file_read_iter")
int shmem_fexit_pages(u64 *ctx)
{
	exit_read((void *)ctx[0], ctx[2], PAGES);
	return 0;
}

SEC("?kprobe.multi/shmem_file_read_iter")
int shmem_multi(struct pt_regs *ctx)
{
	enter_kiocb((void *)PT_REGS_PARM1(ctx), (void *)PT_REGS_PARM2(ctx), 0, true);
	return 0;
}

SEC("?kretprobe.multi/shmem_file_read_iter")
int shmem_multi_return(struct pt_regs *ctx)
{
	exit_read(0, PT_REGS_RC(ctx), BITS);
	return 0;
}

SEC("?fentry/shmem_file_splice_read")
int shmem_splice_fentry(u64 *ctx)
{
	enter_splice((void *)ctx[0], (void *)ctx[1], (void *)ctx[2], ctx[3], true);
	return 0;
}

SEC("?fexit/shmem_file_splice_read")
int shmem_splice_fexit(u64 *ctx)
{
	exit_read((void *)ctx[1], ctx[5], BITS);
	return 0;
}

SEC("?kprobe.multi/shmem_file_splice_read")
int shmem_splice_multi(struct pt_regs *ctx)
{
	enter_splice((void *)PT_REGS_PARM1(ctx), (void *)PT_REGS_PARM2(ctx), (void *)PT_REGS_PARM3(ctx),
		     PT_REGS_PARM4(ctx), true);
	return 0;
}

SEC("?kretprobe.multi/shmem_file_splice_read")
int shmem_splice_multi_return(struct pt_regs *ctx)
{
	exit_read(0, PT_REGS_RC(ctx), BITS);
	return 0;
}

/* ---- read-ahead, so that pages added outside of any request are known for what they are ---- */

static __always_inline void enter_readahead(void)
{
	struct thread *t;

	if (!ready)
		return;
	t = thread_of(true);
	if (t)
		t->readahead++;
}

static __always_inline void exit_readahead(void)
{
	struct thread *t = thread_of(false);

	if (t && t->readahead)
		t->readahead--;
}

SEC("?fentry/page_cache_ra_unbounded")
int ra_fentry(u64 *ctx)
{
	enter_readahead();
	return 0;
}

SEC("?fexit/page_cache_ra_unbounded")
int ra_fexit(u64 *ctx)
{
	exit_readahead();
	return 0;
}

SEC("?kprobe.multi/page_cache_ra_unbounded")
int ra_multi(struct pt_regs *ctx)
{
	enter_readahead();
	return 0;
}

SEC("?kretprobe.multi/page_cache_ra_unbounded")
int ra_multi_return(struct pt_regs *ctx)
{
	exit_readahead();
	return 0;
}

SEC("?fentry/page_cache_ra_order")
int ra_order_fentry(u64 *ctx)
{
	enter_readahead();
	return 0;
}

SEC("?fexit/page_cache_ra_order")
int ra_order_fexit(u64 *ctx)
{
	exit_readahead();
	return 0;
}

/* ---- faults: only what reads and read-ahead need to know of them ---- */

SEC("?fentry/filemap_fault")
int fault_fentry(u64 *ctx)
{
	enter_fault((void *)ctx[0], BITS);
	return 0;
}

SEC("?fentry/filemap_fault")
int fault_fentry_pages(u64 *ctx)
{
	enter_fault((void *)ctx[0], PAGES);
	return 0;
}

SEC("?kprobe.multi/filemap_fault")
int fault_multi(struct pt_regs *ctx)
{
	enter_fault((void *)PT_REGS_PARM1(ctx), BITS);
	return 0;
}

SEC("?fentry/filemap_map_pages")
int map_pages_fentry(u64 *ctx)
{
	enter_map_pages((void *)ctx[0], ctx[1], ctx[2], BITS);
	return 0;
}

SEC("?fentry/filemap_map_pages")
int map_pages_fentry_pages(u64 *ctx)
{
	enter_map_pages((void *)ctx[0], ctx[1], ctx[2], PAGES);
	return 0;
}

SEC("?kprobe.multi/filemap_map_pages")
int map_pages_multi(struct pt_regs *ctx)
{
	enter_map_pages((void *)PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), BITS);
	return 0;
}

/* ---- pages added and deleted ---- */

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_btf(u64 *ctx)
{
	on_add((void *)ctx[0], folio_order_of((void *)ctx[0]), BITS);
	return 0;
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_btf_pages(u64 *ctx)
{
	on_add((void *)ctx[0], 0, PAGES);
	return 0;
}

SEC("?tp/filemap/mm_filemap_add_to_page_cache")
int add_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	on_add(folio_of_pfn(ctx->pfn), ctx->order, BITS);
	return 0;
}

SEC("?tp_btf/mm_filemap_delete_from_page_cache")
int delete_btf(u64 *ctx)
{
	on_delete((void *)ctx[0], folio_order_of((void *)ctx[0]), BITS);
	return 0;
}

SEC("?tp_btf/mm_filemap_delete_from_page_cache")
int delete_btf_pages(u64 *ctx)
{
	on_delete((void *)ctx[0], 0, PAGES);
	return 0;
}

SEC("?tp/filemap/mm_filemap_delete_from_page_cache")
int delete_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	on_delete(folio_of_pfn(ctx->pfn), ctx->order, BITS);
	return 0;
}

/* ---- dirty pages and buffers ---- */

SEC("?tp_btf/writeback_dirty_folio")
int dirty_btf(u64 *ctx)
{
	on_dirty((void *)ctx[0], folio_order_of((void *)ctx[0]), BITS);
	return 0;
}

SEC("?tp_btf/writeback_dirty_page")
int dirty_btf_pages(u64 *ctx)
{
	on_dirty((void *)ctx[0], 0, PAGES);
	return 0;
}

SEC("?kprobe.multi/__folio_mark_dirty")
int dirty_multi(struct pt_regs *ctx)
{
	void *folio = (void *)PT_REGS_PARM1(ctx);

	on_dirty(folio, folio_order_of(folio), BITS);
	return 0;
}

SEC("?tp_btf/block_dirty_buffer")
int buffer_btf(u64 *ctx)
{
	on_buffer_dirty();
	return 0;
}

SEC("?tp/block/block_dirty_buffer")
int buffer_tp(void *ctx)
{
	on_buffer_dirty();
	return 0;
}

/* ---- requests, told from tracepoints only ---- */

/* An argument as a number: the verifier allows no arithmetic on what it knows to be a pointer. */
static __always_inline u64 number(u64 *ctx, u32 n)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + n);
	return value;
}

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
	if (ready)
		ledger_take(number(ctx, 0), ctx[1], ctx[2], BITS);
	return 0;
}

struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym __weak;

static long settle_if_ended(void *map, u32 *tid, struct call *c, void *unused)
{
	struct task_struct *task;
	bool ended = true;

	if (c->state != PENDING)
		return 0;
	task = bpf_task_from_pid(*tid);
	if (task) {
		ended = !c->by_syscall || task->ioac.syscr != c->syscr;
		bpf_task_release(task);
	}
	if (ended)
		end_call(c);
	return 0;
}

/* Run by the monitor before each sample. */
SEC("?syscall")
int settle_pending(void *ctx)
{
	bpf_for_each_map_elem(&calls, settle_if_ended, 0, 0);
	return 0;
}

/* ---- processes ---- */

SEC("?tp/sched/sched_process_exec")
int exec_tp(void *ctx)
{
	on_exec();
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int exec_btf(u64 *ctx)
{
	on_exec();
	return 0;
}

SEC("?tp/sched/sched_process_exit")
int exit_tp(void *ctx)
{
	on_exit();
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int exit_btf(u64 *ctx)
{
	on_exit();
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int exit_in_call_btf(u64 *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calls, &tid);

	if (c) {
		end_call(c);
		flush_extents(c);
		bpf_map_delete_elem(&calls, &tid);
	}
	on_exit();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
