/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see pages come, go and come back, and look-ups of metadata. */
#ifndef CACHETOP_HOOKS_PAGES_H
#define CACHETOP_HOOKS_PAGES_H

#include "../blame.h"
#include "../refault.h"
#include "../request.h"
#include "attach.h"

/*
 * What is rare of an addition stands apart: it would take registers and stack of what is not. Three times, since programs get at a folio in
 * different ways, and a kernel may refuse what another one has.
 */
typedef void rare_addition(struct row *row, void *folio, u32 order);

static __noinline void add_btf_rare(struct row *row, void *folio, u32 order)
{
	added_otherwise(row, folio, order, ARGUMENT_OF_BTF, BITS);
	RETURN_NOTHING();
}

static __noinline void add_btf_pages_rare(struct row *row, void *folio, u32 order)
{
	added_otherwise(row, folio, order, ARGUMENT_OF_BTF, PAGES);
	RETURN_NOTHING();
}

static __noinline void add_tp_rare(struct row *row, void *folio, u32 order)
{
	added_otherwise(row, folio, order, ADDRESS, BITS);
	RETURN_NOTHING();
}

static __always_inline void on_add(void *folio, u32 order, enum folio_from from, enum ledger_mode mode,
				   rare_addition *rare)
{
	struct row *row = own_row(true);

	if (unlikely(!row)) {
		rare(0, folio, order);
		barrier(); /* else both calls become one, and each test before them prepares it */
		return;
	}
	if (unlikely(!added_in_window(row, folio, order, from, mode)))
		rare(row, folio, order);
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_btf(u64 *ctx)
{
	on_add((void *)ctx[0], order_of_argument((void *)ctx[0]), ARGUMENT_OF_BTF, BITS, add_btf_rare);
	return 0;
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int add_btf_pages(u64 *ctx)
{
	on_add((void *)ctx[0], 0, ARGUMENT_OF_BTF, PAGES, add_btf_pages_rare);
	return 0;
}

SEC("?tp/filemap/mm_filemap_add_to_page_cache")
int add_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	on_add(folio_of_pfn(ctx->pfn), ctx->order, ADDRESS, BITS, add_tp_rare);
	return 0;
}

/* The same of one that goes. */
typedef void rare_deletion(void *folio, u32 order);

static __noinline void delete_btf_rare(void *folio, u32 order)
{
	gone_unused(folio, order, ARGUMENT_OF_BTF, BITS);
	RETURN_NOTHING();
}

static __noinline void delete_btf_pages_rare(void *folio, u32 order)
{
	gone_unused(folio, order, ARGUMENT_OF_BTF, PAGES);
	RETURN_NOTHING();
}

static __noinline void delete_tp_rare(void *folio, u32 order)
{
	gone_unused(folio, order, ADDRESS, BITS);
	RETURN_NOTHING();
}

static __noinline void blame_btf_rare(struct blame_last *last, void *folio, u32 order, u32 alike)
{
	blame_gone_otherwise(last, folio, order, ARGUMENT_OF_BTF, alike);
	RETURN_NOTHING();
}

static __noinline void blame_tp_rare(struct blame_last *last, void *folio, u32 order, u32 alike)
{
	blame_gone_otherwise(last, folio, order, ADDRESS, alike);
	RETURN_NOTHING();
}

/* mm_filemap_delete_from_page_cache: pages go, by reclaim or otherwise. Nobody's row: the victim is the cache. */
static __always_inline void on_gone(void *folio, u32 order, enum folio_from from, rare_deletion *rare,
				    rare_blame *blame)
{
	u64 n = 1ULL << (order & 31), first;
	struct task_struct *task = 0;
	bool evicted;

	if (!ready)
		return;
	if (folio_is_hugetlb(folio, order, from == ADDRESS ? folio_mapping_of(folio) : 0, from))
		return;
	if (unlikely(in_ledger(folio, from)))
		rare(folio, order);
	if (knows_running()) {
		task = bpf_get_current_task_btf();
		evicted = task->flags & PF_MEMALLOC;
	} else {
		evicted = reclaims();
	}
	count_gone(n, evicted);
	if (!with_gone)
		return;
	if (with_touches) {
		first = index_from(folio, from);
		if (!evicted)
			touch(0, (u64)folio_mapping_of(folio), first, first + n - 1, TOUCH_GONE);
		if (!with_blame)
			return;
	}
	blame_gone(task, folio, order, from, blame);
}

SEC("?tp_btf/mm_filemap_delete_from_page_cache")
int delete_btf(u64 *ctx)
{
	on_gone((void *)ctx[0], order_of_argument((void *)ctx[0]), ARGUMENT_OF_BTF, delete_btf_rare,
		blame_btf_rare);
	return 0;
}

SEC("?tp_btf/mm_filemap_delete_from_page_cache")
int delete_btf_pages(u64 *ctx)
{
	on_gone((void *)ctx[0], 0, ARGUMENT_OF_BTF, delete_btf_pages_rare, blame_btf_rare);
	return 0;
}

SEC("?tp/filemap/mm_filemap_delete_from_page_cache")
int delete_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	on_gone(folio_of_pfn(ctx->pfn), ctx->order, ADDRESS, delete_tp_rare, blame_tp_rare);
	return 0;
}

/* Pages read back in. */

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

/* Look-ups of metadata. */

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
		block_found(bpf_core_cast((void *)PT_REGS_RC(ctx), struct buffer_head), !(*word & MAY_WAIT),
			    BITS);
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

#endif
