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
#include "direct.h"
#include "fault.h"
#include "process.h"
#include "refault.h"
#include "request.h"
#include "wait.h"
#include "write.h"

/* An argument as a number: the verifier allows no arithmetic on what it knows to be a pointer. */
static __always_inline u64 number(u64 *ctx, u32 n)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + n);
	return value;
}

/* The first argument of a probed function, as what it points to. */
#define ARGUMENT(ctx, n, type) bpf_core_cast((void *)PT_REGS_PARM##n(ctx), type)

/* ---- requests, counted when the function returns ---- */

SEC("?fentry/filemap_read")
int read_fentry(u64 *ctx)
{
	if (with_latency)
		begin_latency();
	/* What was delivered before is an argument of the exit, too. */
	enter_kiocb((void *)ctx[0], (void *)ctx[1], 0);
	return 0;
}

SEC("?fexit/filemap_read")
int read_fexit(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[3], ctx[2], BITS);
	return 0;
}

SEC("?fexit/filemap_read")
int read_fexit_pages(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[3], ctx[2], PAGES);
	return 0;
}

/* For the clock only. */
SEC("?fentry/filemap_splice_read")
int splice_fentry(u64 *ctx)
{
	if (with_latency)
		begin_latency();
	return 0;
}

SEC("?fexit/filemap_splice_read")
int splice_fexit(u64 *ctx)
{
	exit_splice((void *)ctx[0], (void *)ctx[1], ctx[5], BITS);
	return 0;
}

SEC("?fentry/shmem_file_read_iter")
int shmem_fentry(u64 *ctx)
{
	if (with_latency)
		begin_latency();
	enter_shmem((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?fexit/shmem_file_read_iter")
int shmem_fexit(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[2], 0, BITS);
	return 0;
}

SEC("?fexit/shmem_file_read_iter")
int shmem_fexit_pages(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[2], 0, PAGES);
	return 0;
}

SEC("?fentry/shmem_file_splice_read")
int shmem_splice_fentry(u64 *ctx)
{
	if (with_latency)
		begin_latency();
	enter_shmem_splice((void *)ctx[0], (void *)ctx[1], (void *)ctx[2], ctx[3]);
	return 0;
}

SEC("?fexit/shmem_file_splice_read")
int shmem_splice_fexit(u64 *ctx)
{
	exit_splice((void *)ctx[0], (void *)ctx[1], ctx[5], BITS);
	return 0;
}

/*
 * The same through kprobe.session: one program for entry and return. What the return needs to know of the arguments
 * is left by the entry in the cookie, a word that the kernel keeps between the two.
 */

extern bool bpf_session_is_return___old(void) __ksym __weak;
extern __u64 *bpf_session_cookie___old(void) __ksym __weak;
/* 7.0 and newer. */
extern bool bpf_session_is_return___ctx(void *ctx) __ksym __weak;
extern __u64 *bpf_session_cookie___ctx(void *ctx) __ksym __weak;

static __always_inline bool is_return(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_is_return___ctx))
		return bpf_session_is_return___ctx(ctx);
	return bpf_session_is_return___old();
}

static __always_inline u64 *cookie(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_cookie___ctx))
		return (u64 *)bpf_session_cookie___ctx(ctx);
	return (u64 *)bpf_session_cookie___old();
}

SEC("?kprobe.session/filemap_read")
int read_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		exit_kiocb(bpf_core_cast((void *)*word, struct kiocb), PT_REGS_RC(ctx), 0, BITS);
		return 0;
	}
	iocb = ARGUMENT(ctx, 1, struct kiocb);
	*word = (u64)iocb;
	if (with_latency)
		begin_latency();
	enter_kiocb(iocb, ARGUMENT(ctx, 2, struct iov_iter), PT_REGS_PARM3(ctx));
	return 0;
}

SEC("?kprobe.session/shmem_file_read_iter")
int shmem_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		exit_kiocb(bpf_core_cast((void *)*word, struct kiocb), PT_REGS_RC(ctx), 0, BITS);
		return 0;
	}
	iocb = ARGUMENT(ctx, 1, struct kiocb);
	*word = (u64)iocb;
	if (with_latency)
		begin_latency();
	enter_shmem(iocb, ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

/* A splice has two things to remember: a frame holds them. */
static __always_inline void splice_session_body(struct pt_regs *ctx, bool holes)
{
	u64 *word = cookie(ctx);

	if (is_return(ctx)) {
		if (*word)
			leave_splice(*word, PT_REGS_RC(ctx));
		return;
	}
	if (with_latency)
		begin_latency();
	*word = enter_splice(ARGUMENT(ctx, 1, struct file), (loff_t *)PT_REGS_PARM2(ctx),
			     ARGUMENT(ctx, 3, struct pipe_inode_info), PT_REGS_PARM4(ctx), holes);
}

SEC("?kprobe.session/filemap_splice_read")
int splice_session(struct pt_regs *ctx)
{
	splice_session_body(ctx, false);
	return 0;
}

SEC("?kprobe.session/shmem_file_splice_read")
int shmem_splice_session(struct pt_regs *ctx)
{
	splice_session_body(ctx, true);
	return 0;
}

/* ---- what a read that misses asks for ---- */

SEC("?fentry/page_cache_sync_ra")
int sync_fentry(u64 *ctx)
{
	name_read((void *)ctx[0], ctx[1]);
	return 0;
}

SEC("?fentry/page_cache_async_ra")
int async_fentry(u64 *ctx)
{
	name_read((void *)ctx[0], ctx[2]);
	return 0;
}

/* Before 5.18, the read-ahead state was an argument more. */
SEC("?fentry/page_cache_sync_ra")
int sync_old_fentry(u64 *ctx)
{
	name_read((void *)ctx[0], ctx[2]);
	return 0;
}

SEC("?fentry/page_cache_async_ra")
int async_old_fentry(u64 *ctx)
{
	name_read((void *)ctx[0], ctx[3]);
	return 0;
}

SEC("?kprobe.multi/page_cache_sync_ra")
int sync_multi(struct pt_regs *ctx)
{
	name_read(ARGUMENT(ctx, 1, struct readahead_control), PT_REGS_PARM2(ctx));
	return 0;
}

SEC("?kprobe.multi/page_cache_async_ra")
int async_multi(struct pt_regs *ctx)
{
	name_read(ARGUMENT(ctx, 1, struct readahead_control), PT_REGS_PARM3(ctx));
	return 0;
}

SEC("?fentry/page_cache_ra_unbounded")
int window_fentry(u64 *ctx)
{
	enter_window((void *)ctx[0], ctx[1]);
	return 0;
}

SEC("?fexit/page_cache_ra_unbounded")
int window_fexit(u64 *ctx)
{
	exit_window();
	return 0;
}

SEC("?kprobe.session/page_cache_ra_unbounded")
int window_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		exit_window();
	else
		enter_window(ARGUMENT(ctx, 1, struct readahead_control), PT_REGS_PARM2(ctx));
	return 0;
}

SEC("?fentry/page_cache_ra_order")
int window_order_fentry(u64 *ctx)
{
	enter_window_order((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?fexit/page_cache_ra_order")
int window_order_fexit(u64 *ctx)
{
	exit_window();
	return 0;
}

SEC("?kprobe.session/page_cache_ra_order")
int window_order_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		exit_window();
	else
		enter_window_order(ARGUMENT(ctx, 1, struct readahead_control),
				   ARGUMENT(ctx, 2, struct file_ra_state));
	return 0;
}

/* ---- faults ---- */

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

SEC("?fexit/filemap_fault")
int fault_fexit(u64 *ctx)
{
	exit_fault(ctx[1]);
	return 0;
}

SEC("?kprobe.session/filemap_fault")
int fault_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		exit_fault(PT_REGS_RC(ctx));
	else
		enter_fault(ARGUMENT(ctx, 1, struct vm_fault), BITS);
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

SEC("?fexit/filemap_map_pages")
int map_pages_fexit(u64 *ctx)
{
	exit_map_pages((void *)ctx[0], ctx[3] & FAULT_NOPAGE);
	return 0;
}

/* Before 5.12 it returned nothing. */
SEC("?fexit/filemap_map_pages")
int map_pages_old_fexit(u64 *ctx)
{
	exit_map_pages((void *)ctx[0], served_old((void *)ctx[0]));
	return 0;
}

SEC("?kprobe.session/filemap_map_pages")
int map_pages_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct vm_fault *vmf;

	if (is_return(ctx)) {
		exit_map_pages(bpf_core_cast((void *)*word, struct vm_fault), PT_REGS_RC(ctx) & FAULT_NOPAGE);
		return 0;
	}
	vmf = ARGUMENT(ctx, 1, struct vm_fault);
	*word = (u64)vmf;
	enter_map_pages(vmf, PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), BITS);
	return 0;
}

SEC("?fentry/set_pte_range")
int mapped_fentry(u64 *ctx)
{
	on_mapped((u32)ctx[3]);
	return 0;
}

SEC("?kprobe.multi/set_pte_range")
int mapped_multi(struct pt_regs *ctx)
{
	on_mapped((u32)PT_REGS_PARM4(ctx));
	return 0;
}

/* A huge page at once; 0: done. */
SEC("?fexit/do_set_pmd")
int mapped_huge_fexit(u64 *ctx)
{
	if (!(u32)ctx[2])
		on_mapped(HUGE_PAGES);
	return 0;
}

/* From 6.16 it has an argument more. */
SEC("?fexit/do_set_pmd")
int mapped_huge_fexit3(u64 *ctx)
{
	if (!(u32)ctx[3])
		on_mapped(HUGE_PAGES);
	return 0;
}

SEC("?kprobe.session/do_set_pmd")
int mapped_huge_session(struct pt_regs *ctx)
{
	if (is_return(ctx) && !(u32)PT_REGS_RC(ctx))
		on_mapped(HUGE_PAGES);
	return 0;
}

SEC("?fexit/shmem_fault")
int shmem_fault_fexit(u64 *ctx)
{
	exit_shmem_fault((void *)ctx[0], ctx[1], BITS);
	return 0;
}

SEC("?fexit/shmem_fault")
int shmem_fault_fexit_pages(u64 *ctx)
{
	exit_shmem_fault((void *)ctx[0], ctx[1], PAGES);
	return 0;
}

SEC("?kprobe.session/shmem_fault")
int shmem_fault_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);

	if (is_return(ctx))
		exit_shmem_fault(bpf_core_cast((void *)*word, struct vm_fault), PT_REGS_RC(ctx), BITS);
	else
		*word = PT_REGS_PARM1(ctx);
	return 0;
}

/* ---- pages read back in ---- */

SEC("?fentry/workingset_refault")
int refault_fentry(u64 *ctx)
{
	on_refault((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/workingset_refault")
int refault_multi(struct pt_regs *ctx)
{
	on_refault((void *)PT_REGS_PARM1(ctx));
	return 0;
}

/* ---- buffered writes ---- */

SEC("?fentry/generic_perform_write")
int write_fentry(u64 *ctx)
{
	enter_write((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?fexit/generic_perform_write")
int write_fexit(u64 *ctx)
{
	exit_write((void *)ctx[0], ctx[2]);
	return 0;
}

/* Before 6.1 it had (file, iter, pos). */
SEC("?fentry/generic_perform_write")
int write_old_fentry(u64 *ctx)
{
	struct file *file = (void *)ctx[0];
	struct iov_iter *iter = (void *)ctx[1];

	begin_write(iter, file->f_mapping, ctx[2], iter->count, false);
	return 0;
}

SEC("?fexit/generic_perform_write")
int write_old_fexit(u64 *ctx)
{
	end_write((void *)ctx[1], (void *)ctx[0], ctx[3], 0, false);
	return 0;
}

SEC("?fentry/iomap_file_buffered_write")
int iomap_write_fentry(u64 *ctx)
{
	enter_write((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

/* Three arguments until 6.1, four until 6.16, then five. */
SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit(u64 *ctx)
{
	exit_write((void *)ctx[0], ctx[3]);
	return 0;
}

SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit4(u64 *ctx)
{
	exit_write((void *)ctx[0], ctx[4]);
	return 0;
}

SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit5(u64 *ctx)
{
	exit_write((void *)ctx[0], ctx[5]);
	return 0;
}

SEC("?fentry/btrfs_buffered_write")
int btrfs_write_fentry(u64 *ctx)
{
	enter_btrfs_write((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?fexit/btrfs_buffered_write")
int btrfs_write_fexit(u64 *ctx)
{
	exit_btrfs_write((void *)ctx[0], ctx[2]);
	return 0;
}

SEC("?kprobe.session/generic_perform_write")
int write_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		exit_write(bpf_core_cast((void *)*word, struct kiocb), PT_REGS_RC(ctx));
		return 0;
	}
	iocb = ARGUMENT(ctx, 1, struct kiocb);
	*word = (u64)iocb;
	enter_write(iocb, ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

SEC("?kprobe.session/btrfs_buffered_write")
int btrfs_write_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		exit_btrfs_write(bpf_core_cast((void *)*word, struct kiocb), PT_REGS_RC(ctx));
		return 0;
	}
	iocb = ARGUMENT(ctx, 1, struct kiocb);
	*word = (u64)iocb;
	enter_btrfs_write(iocb, ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

/* Pages of tmpfs: (folio, mapping, index, …), of which the last two are numbers to us. */
SEC("?fexit/shmem_add_to_page_cache")
int shmem_add_fexit(u64 *ctx)
{
	if (!(u32)ctx[5])
		on_shmem_add((void *)ctx[0], number(ctx, 1), ctx[2]);
	return 0;
}

/* Until 6.1 with the memory that is charged as an argument more. */
SEC("?fexit/shmem_add_to_page_cache")
int shmem_add_old_fexit(u64 *ctx)
{
	if (!(u32)ctx[6])
		on_shmem_add((void *)ctx[0], number(ctx, 1), ctx[2]);
	return 0;
}

SEC("?kprobe.multi/shmem_add_to_page_cache")
int shmem_add_multi(struct pt_regs *ctx)
{
	on_shmem_add((void *)PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx));
	return 0;
}

/* ---- I/O past the cache ---- */

/* Functions that submit it have too many arguments for a trampoline on most kernels. */
SEC("?kprobe/__iomap_dio_rw")
int direct_kprobe(struct pt_regs *ctx)
{
	begin_direct(PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?kprobe.multi/__iomap_dio_rw")
int direct_multi(struct pt_regs *ctx)
{
	begin_direct(PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?fentry/iomap_dio_complete")
int iomap_done_fentry(u64 *ctx)
{
	complete_iomap((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/iomap_dio_complete")
int iomap_done_multi(struct pt_regs *ctx)
{
	complete_iomap(ARGUMENT(ctx, 1, struct iomap_dio));
	return 0;
}

SEC("?fentry/iomap_dio_simple_complete")
int simple_done_fentry(u64 *ctx)
{
	complete_simple((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/iomap_dio_simple_complete")
int simple_done_multi(struct pt_regs *ctx)
{
	complete_simple(ARGUMENT(ctx, 1, struct iomap_dio_simple));
	return 0;
}

SEC("?fentry/dio_complete")
int buffers_done_fentry(u64 *ctx)
{
	complete_buffers((void *)ctx[0], ctx[1]);
	return 0;
}

SEC("?kprobe.multi/dio_complete")
int buffers_done_multi(struct pt_regs *ctx)
{
	complete_buffers(ARGUMENT(ctx, 1, struct dio), PT_REGS_PARM2(ctx));
	return 0;
}

SEC("?fentry/blkdev_direct_IO")
int device_fentry(u64 *ctx)
{
	enter_device((void *)ctx[1]);
	return 0;
}

SEC("?fexit/blkdev_direct_IO")
int device_fexit(u64 *ctx)
{
	exit_device(ctx[2]);
	return 0;
}

SEC("?kprobe.session/blkdev_direct_IO")
int device_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		exit_device(PT_REGS_RC(ctx));
	else
		enter_device(ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

SEC("?tp_btf/iomap_dio_rw_begin")
int direct_btf(u64 *ctx)
{
	on_direct_begin(number(ctx, 0), (void *)ctx[1], ctx[3]);
	return 0;
}

SEC("?tp_btf/iomap_dio_complete")
int direct_done_btf(u64 *ctx)
{
	on_direct_complete(number(ctx, 0), ctx[2]);
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

/* ---- look-ups of metadata ---- */

/* bdev_getblk(bdev, block, size, gfp): what may not wait reads ahead. */
SEC("?fexit/bdev_getblk")
int block_fexit(u64 *ctx)
{
	block_found((void *)ctx[4], !(ctx[3] & MAY_WAIT), BITS);
	return 0;
}

SEC("?kprobe.session/bdev_getblk")
int block_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);

	if (is_return(ctx))
		block_found((void *)PT_REGS_RC(ctx), !(*word & MAY_WAIT), BITS);
	else
		*word = PT_REGS_PARM4(ctx);
	return 0;
}

/* __getblk_gfp(bdev, block, size, gfp), before 6.7: ext4 reads ahead with no flags at all. */
SEC("?fexit/__getblk_gfp")
int block_old_fexit(u64 *ctx)
{
	block_found((void *)ctx[4], !(u32)ctx[3], BITS);
	return 0;
}

SEC("?fexit/__getblk_gfp")
int block_old_fexit_pages(u64 *ctx)
{
	block_found((void *)ctx[4], !(u32)ctx[3], PAGES);
	return 0;
}

SEC("?fentry/__breadahead")
int breadahead_fentry(u64 *ctx)
{
	buffer_read_ahead();
	return 0;
}

/* ---- requests, told from tracepoints only ---- */

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
	return 0;
}

/* Run by the monitor before each sample. */
SEC("?syscall")
int settle_pending(void *ctx)
{
	bpf_for_each_map_elem(&calls, settle_if_ended, 0, 0);
	return 0;
}

/* ---- threads that get another name, or end ---- */

SEC("?tp_btf/task_rename")
int rename_btf(u64 *ctx)
{
	on_rename(number(ctx, 0));
	return 0;
}

SEC("?tp/task/task_rename")
int rename_tp(void *ctx)
{
	on_rename(bpf_get_current_task());
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
		settle_faults_of(c, bpf_get_current_task_btf());
		end_call(c);
		flush_extents(c);
		bpf_map_delete_elem(&calls, &tid);
	}
	on_exit();
	return 0;
}

/* ---- the command that is watched ---- */

SEC("?tp_btf/sched_process_fork")
int fork_btf(u64 *ctx)
{
	on_fork((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?tp_btf/sched_process_free")
int free_btf(u64 *ctx)
{
	on_free((void *)ctx[0]);
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
	begin_lookup();
	return 0;
}

SEC("?kprobe.multi/d_alloc_parallel")
int lookup_multi(struct pt_regs *ctx)
{
	begin_lookup();
	return 0;
}

SEC("?fentry/d_splice_alias")
int answer_fentry(u64 *ctx)
{
	end_lookup();
	return 0;
}

SEC("?kprobe.multi/d_splice_alias")
int answer_multi(struct pt_regs *ctx)
{
	end_lookup();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
