/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see reads where functions can be attached. */
#ifndef CACHETOP_HOOKS_READS_H
#define CACHETOP_HOOKS_READS_H

#include "../plain.h"
#include "../request.h"
#include "attach.h"

/* Counted when the function returns. */

SEC("?fentry/filemap_read")
int read_fentry(u64 *ctx)
{
	if (with_latency)
		begin_latency();
	/* What was delivered before is an argument of the exit, too. */
	enter_kiocb((void *)ctx[0], (void *)ctx[1], 0);
	return 0;
}

/* What is rare stands apart: it would take registers and stack of the reads that need none. */

static __noinline void read_fexit_rare(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[3], ctx[2], BITS);
	RETURN_NOTHING();
}

static __noinline void read_fexit_rare_pages(u64 *ctx)
{
	exit_kiocb((void *)ctx[0], ctx[3], ctx[2], PAGES);
	RETURN_NOTHING();
}

SEC("?fexit/filemap_read")
int read_fexit(u64 *ctx)
{
	struct row *row = own_row(true);

	if (likely(row) && likely(exit_warm(row, (void *)ctx[0], ctx[3], ctx[2], true, BITS)))
		return 0;
	read_fexit_rare(ctx);
	return 0;
}

/* Where only counts are requested. */
SEC("?fexit/filemap_read")
int read_counts_fexit(u64 *ctx)
{
	struct row *row = own_row(true);

	if (likely(row) && likely(exit_warm(row, (void *)ctx[0], ctx[3], ctx[2], false, BITS)))
		return 0;
	read_fexit_rare(ctx);
	return 0;
}

SEC("?fexit/filemap_read")
int read_fexit_pages(u64 *ctx)
{
	struct row *row = own_row(true);

	if (likely(row) && likely(exit_warm(row, (void *)ctx[0], ctx[3], ctx[2], true, PAGES)))
		return 0;
	read_fexit_rare_pages(ctx);
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

static __noinline void enter_rare_read(struct pt_regs *ctx)
{
	enter_kiocb(ARGUMENT(ctx, 1, struct kiocb), ARGUMENT(ctx, 2, struct iov_iter), PT_REGS_PARM3(ctx));
	RETURN_NOTHING();
}

static __noinline void exit_any_read(struct pt_regs *ctx)
{
	exit_kiocb(bpf_core_cast((void *)*cookie(ctx), struct kiocb), PT_REGS_RC(ctx), 0, BITS);
	RETURN_NOTHING();
}

static __always_inline void enter_read_session(struct pt_regs *ctx, u64 *word)
{
	u64 iocb = PT_REGS_PARM1(ctx);

	*word = iocb;
	/* Both at once, and nothing that is the same for the whole life of a kernel: see enter_kiocb. */
	if (unlikely(PT_REGS_PARM3(ctx) |
		     (bpf_core_cast((void *)iocb, struct kiocb)->ki_flags & IOCB_DONTCACHE)))
		enter_rare_read(ctx);
}

/* Where only counts are requested, from 7.0 on: the path of nearly all reads, as short as it can be. */
SEC("?kprobe.session/filemap_read")
int read_session(struct pt_regs *ctx)
{
	struct kiocb *iocb;
	struct row *row;

	if (!bpf_session_is_return___ctx(ctx)) {
		enter_read_session(ctx, (u64 *)bpf_session_cookie___ctx(ctx));
		return 0;
	}
	row = own_row(true);
	if (likely(row)) {
		iocb = bpf_core_cast((void *)*bpf_session_cookie___ctx(ctx), struct kiocb);
		if (likely(exit_warm(row, iocb, PT_REGS_RC(ctx), 0, false, BITS)))
			return 0;
	}
	exit_any_read(ctx);
	return 0;
}

static __noinline void enter_returning_read(struct pt_regs *ctx)
{
	struct row *row = own_row(false);

	if (row)
		begin_after_plain(row, PT_REGS_PARM2(ctx));
	enter_read_session(ctx, (u64 *)bpf_session_cookie___ctx(ctx));
	RETURN_NOTHING();
}

/* The same, and plain reads have no hook at their return. The kernel skips it when the entry returns 1. */
static __always_inline int read_plain(struct pt_regs *ctx, bool files)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct row *row = own_row_at_hand(task);
	struct kiocb *iocb;

	if (!bpf_session_is_return___ctx(ctx)) {
		if (likely(row) && likely(may_be_plain(row, false)) &&
		    likely(enter_plain_read(row, task, ctx, files)))
			return 1;
		enter_returning_read(ctx);
		return 0;
	}
	if (likely(row)) {
		iocb = bpf_core_cast((void *)*bpf_session_cookie___ctx(ctx), struct kiocb);
		if (likely(exit_warm(row, iocb, PT_REGS_RC(ctx), 0, files, BITS)))
			return 0;
	}
	exit_any_read(ctx);
	return 0;
}

SEC("?kprobe.session/filemap_read")
int read_plain_session(struct pt_regs *ctx)
{
	return read_plain(ctx, false);
}

/* Where files are requested. */
SEC("?kprobe.session/filemap_read")
int read_plain_files_session(struct pt_regs *ctx)
{
	return read_plain(ctx, true);
}

/* fixup_exception(regs, number, error, address) */
SEC("?kprobe.multi/fixup_exception")
int bad_address_multi(struct pt_regs *ctx)
{
	on_bad_address(PT_REGS_PARM4(ctx));
	return 0;
}

/* Rows that the monitor reads: as many as it has mapped. */
u32 rows_read = 0;

static long look_at_row(u32 n, void *unused)
{
	struct row *row = row_at(n);

	if (!row)
		return 1;
	if (with_plain_faults)
		look_at_plain_fault(row);
	if (with_plain)
		look_at_plain(row);
	return 0;
}

/* Run by the monitor before each sample. */
SEC("?syscall")
int look_plain(void *ctx)
{
	bpf_loop(rows_read, look_at_row, 0, 0);
	return 0;
}

/* Where latency is requested, or a command is followed, and before 7.0. */
SEC("?kprobe.session/filemap_read")
int read_detail_session(struct pt_regs *ctx)
{
	struct kiocb *iocb;
	struct row *row;

	if (!is_return(ctx)) {
		if (with_latency)
			begin_latency();
		enter_read_session(ctx, cookie(ctx));
		return 0;
	}
	row = own_row(true);
	if (likely(row)) {
		iocb = bpf_core_cast((void *)*cookie(ctx), struct kiocb);
		if (likely(exit_warm(row, iocb, PT_REGS_RC(ctx), 0, true, BITS)))
			return 0;
	}
	exit_any_read(ctx);
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

/* What a read that misses asks for. */

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

#endif
