/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see I/O past the cache. */
#ifndef CACHETOP_HOOKS_DIRECT_H
#define CACHETOP_HOOKS_DIRECT_H

#include "../direct.h"
#include "attach.h"

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
	enter_device(number(ctx, 0), (void *)ctx[1]);
	return 0;
}

SEC("?fexit/blkdev_direct_IO")
int device_fexit(u64 *ctx)
{
	exit_device(ctx[2]);
	return 0;
}

/* Its callees, with the number of pages as an argument more: see PARTS in src/plan/writes.rs. */

SEC("?fentry/__blkdev_direct_IO_simple")
int device_simple_fentry(u64 *ctx)
{
	enter_device(number(ctx, 0), (void *)ctx[1]);
	return 0;
}

SEC("?fexit/__blkdev_direct_IO_simple")
int device_simple_fexit(u64 *ctx)
{
	exit_device(ctx[3]);
	return 0;
}

SEC("?fentry/__blkdev_direct_IO_async")
int device_async_fentry(u64 *ctx)
{
	enter_device(number(ctx, 0), (void *)ctx[1]);
	return 0;
}

SEC("?fexit/__blkdev_direct_IO_async")
int device_async_fexit(u64 *ctx)
{
	exit_device(ctx[3]);
	return 0;
}

SEC("?fentry/__blkdev_direct_IO")
int device_many_fentry(u64 *ctx)
{
	enter_device(number(ctx, 0), (void *)ctx[1]);
	return 0;
}

SEC("?fexit/__blkdev_direct_IO")
int device_many_fexit(u64 *ctx)
{
	exit_device(ctx[3]);
	return 0;
}

SEC("?kprobe.session/blkdev_direct_IO")
int device_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		exit_device(PT_REGS_RC(ctx));
	else
		enter_device(PT_REGS_PARM1(ctx), ARGUMENT(ctx, 2, struct iov_iter));
	return 0;
}

SEC("?tp_btf/iomap_dio_rw_begin")
int direct_btf(u64 *ctx)
{
	on_direct_begin(number(ctx, 0), (void *)ctx[1], ctx[3]);
	return 0;
}

SEC("?tp_btf/iomap_dio_rw_queued")
int direct_queued_btf(u64 *ctx)
{
	on_direct_queued(number(ctx, 1), number(ctx, 2));
	return 0;
}

SEC("?tp_btf/iomap_dio_complete")
int direct_done_btf(u64 *ctx)
{
	on_direct_complete(number(ctx, 0), ctx[2]);
	return 0;
}

#endif
