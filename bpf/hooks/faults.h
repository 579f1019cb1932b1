/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see page faults. */
#ifndef CACHETOP_HOOKS_FAULTS_H
#define CACHETOP_HOOKS_FAULTS_H

#include "../fault.h"
#include "attach.h"

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
	struct row *row;
	struct thread *t;

	if (is_return(ctx)) {
		exit_fault(PT_REGS_RC(ctx));
		return 0;
	}
	row = own_row(true);
	t = row ? thread_of(row) : 0;
	if (!t)
		return 0;
	settle_plain_fault(row, t);
	enter_fault_of(row, t, ARGUMENT(ctx, 1, struct vm_fault), BITS);
	return 0;
}

SEC("?fentry/filemap_map_pages")
int map_pages_fentry(u64 *ctx)
{
	enter_map_pages(own_row(true));
	return 0;
}

SEC("?fexit/filemap_map_pages")
int map_pages_fexit(u64 *ctx)
{
	struct account a;

	if (!account_open(&a))
		return 0;
	used_unseen(a.row, (void *)ctx[0], ctx[1], ctx[2], BITS);
	exit_map_pages(&a, (void *)ctx[0], ctx[3] & FAULT_NOPAGE);
	return 0;
}

/* Before 5.12 it returned nothing. */
SEC("?fexit/filemap_map_pages")
int map_pages_old_fexit(u64 *ctx)
{
	struct account a;

	if (!account_open(&a))
		return 0;
	used_unseen(a.row, (void *)ctx[0], ctx[1], ctx[2], PAGES);
	exit_map_pages(&a, (void *)ctx[0], served_old((void *)ctx[0]));
	return 0;
}

SEC("?kprobe.session/filemap_map_pages")
int map_pages_session(struct pt_regs *ctx)
{
	u64 *word = cookie(ctx);
	struct vm_fault *vmf;
	struct account a;

	if (!account_open(&a))
		return 0;
	if (is_return(ctx)) {
		exit_map_pages(&a, bpf_core_cast((void *)*word, struct vm_fault),
			       PT_REGS_RC(ctx) & FAULT_NOPAGE);
		return 0;
	}
	vmf = ARGUMENT(ctx, 1, struct vm_fault);
	*word = (u64)vmf;
	used_unseen(a.row, vmf, PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), BITS);
	enter_map_pages(a.row);
	return 0;
}

/* The same, and a fault whose page is there has no hook at its end. */
SEC("?kprobe.multi/filemap_map_pages")
int map_pages_multi(struct pt_regs *ctx)
{
	struct vm_fault *vmf = ARGUMENT(ctx, 1, struct vm_fault);
	struct row *row = own_row(true);

	if (!row)
		return 0;
	used_unseen(row, vmf, PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx), BITS);
	begin_plain_fault(row, vmf);
	return 0;
}

SEC("?fentry/set_pte_range")
int mapped_fentry(u64 *ctx)
{
	on_mapped_at((void *)ctx[0], (u32)ctx[3], ctx[4]);
	return 0;
}

SEC("?kprobe.multi/set_pte_range")
int mapped_multi(struct pt_regs *ctx)
{
	on_mapped_at(ARGUMENT(ctx, 1, struct vm_fault), (u32)PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx));
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
	struct row *row;
	struct thread *t;

	if (is_return(ctx)) {
		exit_shmem_fault(bpf_core_cast((void *)*word, struct vm_fault), PT_REGS_RC(ctx), BITS);
		return 0;
	}
	*word = PT_REGS_PARM1(ctx);
	row = with_plain_faults ? own_row(false) : 0;
	t = row ? thread_of(row) : 0;
	if (t)
		settle_plain_fault(row, t);
	return 0;
}

#endif
