/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see buffered writes and the pages that they dirty. */
#ifndef CACHETOP_HOOKS_WRITES_H
#define CACHETOP_HOOKS_WRITES_H

#include "../plain.h"
#include "../write.h"
#include "attach.h"

/* What is rare stands apart, as with reads. */

static __noinline void write_fexit_rare(u64 *ctx, s64 ret)
{
	exit_write((void *)ctx[0], ret, BITS);
	RETURN_NOTHING();
}

static __noinline void write_fexit_rare_pages(u64 *ctx, s64 ret)
{
	exit_write((void *)ctx[0], ret, PAGES);
	RETURN_NOTHING();
}

static __noinline void write_session_rare(u64 iocb, s64 ret)
{
	exit_write(bpf_core_cast((void *)iocb, struct kiocb), ret, BITS);
	RETURN_NOTHING();
}

static __always_inline void write_returns(u64 *ctx, s64 ret)
{
	struct kiocb *iocb = (void *)ctx[0];

	if (!likely(end_plain_write(iocb, ret, BITS)))
		write_fexit_rare(ctx, ret);
}

SEC("?fentry/generic_perform_write")
int write_fentry(u64 *ctx)
{
	enter_write((void *)ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("?fexit/generic_perform_write")
int write_fexit(u64 *ctx)
{
	write_returns(ctx, ctx[2]);
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
	end_write((void *)ctx[1], (void *)ctx[0], ctx[3], 0, false, PAGES);
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
	write_returns(ctx, ctx[3]);
	return 0;
}

SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit_pages(u64 *ctx)
{
	if (!likely(end_plain_write((void *)ctx[0], ctx[3], PAGES)))
		write_fexit_rare_pages(ctx, ctx[3]);
	return 0;
}

SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit4(u64 *ctx)
{
	write_returns(ctx, ctx[4]);
	return 0;
}

SEC("?fexit/iomap_file_buffered_write")
int iomap_write_fexit5(u64 *ctx)
{
	write_returns(ctx, ctx[5]);
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
	exit_btrfs_write((void *)ctx[0], ctx[2], BITS);
	return 0;
}

SEC("?fexit/btrfs_buffered_write")
int btrfs_write_fexit_pages(u64 *ctx)
{
	exit_btrfs_write((void *)ctx[0], ctx[2], PAGES);
	return 0;
}

SEC("?kprobe.session/generic_perform_write")
int write_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		iocb = bpf_core_cast((void *)*word, struct kiocb);
		if (!likely(end_plain_write(iocb, PT_REGS_RC(ctx), BITS)))
			write_session_rare(*word, PT_REGS_RC(ctx));
		return 0;
	}
	iocb = ARGUMENT(ctx, 1, struct kiocb);
	*word = (u64)iocb;
	enter_write(iocb, ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

static __noinline void enter_returning_write(struct pt_regs *ctx)
{
	struct row *row = own_row(false);

	if (row) {
		begin_after_plain(row, PT_REGS_PARM2(ctx));
		row->waited = 0; /* in an earlier call */
	}
	*(u64 *)bpf_session_cookie___ctx(ctx) = PT_REGS_PARM1(ctx);
	enter_write(ARGUMENT(ctx, 1, struct kiocb), ARGUMENT(ctx, 2, struct iov_iter));
	RETURN_NOTHING();
}

/* The same, and plain writes have no hook at their return: see read_plain. */
static __always_inline int write_plain(struct pt_regs *ctx, bool files)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct row *row;
	u64 iocb;

	if (!bpf_session_is_return___ctx(ctx)) {
		row = own_row_at_hand(task);
		if (likely(row) && likely(may_be_plain(row, true)) &&
		    likely(enter_plain_write(row, task, ctx, files)))
			return 1;
		enter_returning_write(ctx);
		return 0;
	}
	iocb = *(u64 *)bpf_session_cookie___ctx(ctx);
	if (!likely(end_plain_write(bpf_core_cast((void *)iocb, struct kiocb), PT_REGS_RC(ctx), BITS)))
		write_session_rare(iocb, PT_REGS_RC(ctx));
	return 0;
}

SEC("?kprobe.session/generic_perform_write")
int write_plain_session(struct pt_regs *ctx)
{
	return write_plain(ctx, false);
}

/* Where files are requested. */
SEC("?kprobe.session/generic_perform_write")
int write_plain_files_session(struct pt_regs *ctx)
{
	return write_plain(ctx, true);
}

SEC("?kprobe.session/btrfs_buffered_write")
int btrfs_write_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct kiocb *iocb;

	if (is_return(ctx)) {
		exit_btrfs_write(bpf_core_cast((void *)*word, struct kiocb), PT_REGS_RC(ctx), BITS);
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

/* Dirty pages and buffers. */

SEC("?tp_btf/writeback_dirty_folio")
int dirty_btf(u64 *ctx)
{
	on_dirty((void *)ctx[0], order_of_argument((void *)ctx[0]), ARGUMENT_OF_BTF, BITS);
	return 0;
}

SEC("?tp_btf/writeback_dirty_page")
int dirty_btf_pages(u64 *ctx)
{
	on_dirty((void *)ctx[0], 0, ARGUMENT_OF_BTF, PAGES);
	return 0;
}

SEC("?kprobe.multi/__folio_mark_dirty")
int dirty_multi(struct pt_regs *ctx)
{
	void *folio = (void *)PT_REGS_PARM1(ctx);

	on_dirty(folio, folio_order_of(folio), ADDRESS, BITS);
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

#endif
