/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs on the trees of btrfs. */
#ifndef CACHETOP_HOOKS_TREES_H
#define CACHETOP_HOOKS_TREES_H

#include "../btree.h"
#include "attach.h"

SEC("?fexit/find_extent_buffer")
int tree_found_fexit(u64 *ctx)
{
	tree_block_found((void *)number(ctx, 2));
	return 0;
}

SEC("?kprobe.session/find_extent_buffer")
int tree_found_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		tree_block_found((void *)PT_REGS_RC(ctx));
	return 0;
}

SEC("?fentry/alloc_extent_buffer")
int tree_alloc_fentry(u64 *ctx)
{
	tree_block_wanted(ctx[1]);
	return 0;
}

SEC("?fexit/alloc_extent_buffer")
int tree_alloc_fexit(u64 *ctx)
{
	tree_block_wanted(0);
	return 0;
}

SEC("?kprobe.session/alloc_extent_buffer")
int tree_alloc_session(struct pt_regs *ctx)
{
	tree_block_wanted(is_return(ctx) ? 0 : PT_REGS_PARM2(ctx));
	return 0;
}

SEC("?fentry/read_extent_buffer_pages")
int tree_read_fentry(u64 *ctx)
{
	tree_block_read((void *)number(ctx, 0), false);
	return 0;
}

/* (eb, wait, mirror_num, …), before read-ahead got a function of its own (6.12). */
SEC("?fentry/read_extent_buffer_pages")
int tree_read_old_fentry(u64 *ctx)
{
	tree_block_read((void *)number(ctx, 0), (u32)ctx[1] == WAIT_NONE);
	return 0;
}

SEC("?kprobe.multi/read_extent_buffer_pages")
int tree_read_multi(struct pt_regs *ctx)
{
	tree_block_read((void *)PT_REGS_PARM1(ctx), false);
	return 0;
}

SEC("?fentry/read_extent_buffer_pages_nowait")
int tree_ahead_fentry(u64 *ctx)
{
	tree_block_read((void *)number(ctx, 0), true);
	return 0;
}

SEC("?kprobe.multi/read_extent_buffer_pages_nowait")
int tree_ahead_multi(struct pt_regs *ctx)
{
	tree_block_read((void *)PT_REGS_PARM1(ctx), true);
	return 0;
}

#endif
