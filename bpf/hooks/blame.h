/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see which pages come back that somebody took out. Those that go are seen by the programs that count them (pages.h). */
#ifndef CACHETOP_HOOKS_BLAME_H
#define CACHETOP_HOOKS_BLAME_H

#include "../blame.h"
#include "../growth.h"
#include "attach.h"

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int blame_came_btf(u64 *ctx)
{
	blame_came((void *)ctx[0], order_of_argument((void *)ctx[0]), ARGUMENT_OF_BTF);
	return 0;
}

SEC("?tp/filemap/mm_filemap_add_to_page_cache")
int blame_came_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	blame_came(folio_of_pfn(ctx->pfn), ctx->order, ADDRESS);
	return 0;
}

SEC("?fentry/workingset_refault")
int blame_refault_fentry(u64 *ctx)
{
	blame_refault((void *)ctx[0]);
	return 0;
}

SEC("?kprobe.multi/workingset_refault")
int blame_refault_multi(struct pt_regs *ctx)
{
	blame_refault((void *)PT_REGS_PARM1(ctx));
	return 0;
}

/* Of the entry, only a kprobe knows where the stack is. */
SEC("?kprobe.session/io_schedule")
int blame_wait_session(struct pt_regs *ctx)
{
	if (is_return(ctx))
		blame_waited();
	else
		blame_wait(PT_REGS_SP(ctx));
	return 0;
}

SEC("?kprobe/io_schedule")
int blame_wait_kprobe(struct pt_regs *ctx)
{
	blame_wait(PT_REGS_SP(ctx));
	return 0;
}

SEC("?fexit/io_schedule")
int blame_waited_fexit(u64 *ctx)
{
	blame_waited();
	return 0;
}

SEC("?tp_btf/mm_lru_insertion")
int blame_grew_btf(u64 *ctx)
{
	grew((void *)ctx[0]);
	return 0;
}

SEC("?tp_btf/mm_vmscan_wakeup_kswapd")
int blame_woke_btf(u64 *ctx)
{
	woke((u32)ctx[3]);
	return 0;
}

SEC("?tp/vmscan/mm_vmscan_wakeup_kswapd")
int blame_woke_tp(struct trace_event_raw_mm_vmscan_wakeup_kswapd *ctx)
{
	woke((u32)ctx->gfp_flags);
	return 0;
}

#endif
