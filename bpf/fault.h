/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Page faults on file mappings. */
#ifndef CACHETOP_FAULT_H
#define CACHETOP_FAULT_H

#include "request.h"

/* enum vm_fault_reason, the same numbers on all kernels since 5.1. */
#define FAULT_ERROR (0x1 | 0x2 | 0x10 | 0x20 | 0x40 | 0x800)
#define FAULT_MAJOR 0x4
#define FAULT_NOPAGE 0x100
#define FAULT_RETRY 0x400

static __always_inline void enter_fault(struct vm_fault *vmf, enum ledger_mode mode)
{
	u64 mapping, index = vmf->pgoff;
	struct row *row = own_row(true);
	struct thread *t;
	struct frame *f;

	if (!row)
		return;
	t = thread_of(row);
	if (!t)
		return;
	mapping = number_of(row, vmf->vma->vm_file->f_mapping);
	f = push_frame(row, t, F_FAULT, mapping, index);
	f->pos = index;
	/* A fault uses the page, though it is no read. */
	ledger_take(mapping, index, index, mode);
}

/* A fault that was served: once, however often it was tried. Told to try again, it comes back for the same page. */
static __always_inline void count_fault(struct account *a, struct thread *t, u64 mapping, u64 index, u32 ret)
{
	bool retried = t->again.mapping == mapping && t->again.index == index;

	if (retried)
		t->again.mapping = 0;
	if (ret & FAULT_ERROR)
		return;
	if (ret & FAULT_RETRY) {
		t->again.mapping = mapping;
		t->again.index = index;
	}
	if (retried)
		return;
	if (ret & FAULT_MAJOR)
		COUNT(a, C_FAULT_MISSES, 1);
	else
		COUNT(a, C_FAULT_HITS, 1);
	file_count(file_seen(a->row, mapping), ret & FAULT_MAJOR ? FC_FAULT_MISSES : FC_FAULT_HITS, 1);
}

static __always_inline void exit_fault(u32 ret)
{
	struct account a = {.row = own_row(false)};
	struct thread *t;
	struct frame *f;
	u32 depth;

	if (!a.row)
		return;
	t = thread_of(a.row);
	depth = a.row->depth;
	if (!t || !depth || depth > MAX_DEPTH)
		return;
	f = frame_at(t, depth - 1);
	if (f->kind != F_FAULT) {
		count_one(C_LOST_DEPTH);
		return;
	}
	a.row->depth = depth - 1;
	close_window(&a, t);
	count_fault(&a, t, f->mapping, f->pos, ret);
}

/* Pages mapped around a fault may be used unseen from now on: they are not called wasted later. */
static __always_inline void enter_map_pages(struct vm_fault *vmf, u64 first, u64 last, enum ledger_mode mode)
{
	struct row *row = own_row(true);

	if (row)
		ledger_take(number_of(row, vmf->vma->vm_file->f_mapping), first, last, mode);
}

/* The page was there and is mapped now, with what stood around it. */
static __always_inline void exit_map_pages(struct vm_fault *vmf, u32 ret)
{
	struct account a;
	struct thread *t;

	if (!(ret & FAULT_NOPAGE) || !account_open(&a) || !a.row)
		return;
	t = thread_of(a.row);
	if (t)
		count_fault(&a, t, number_of(a.row, vmf->vma->vm_file->f_mapping), vmf->pgoff,
			    ret & ~FAULT_RETRY);
}

#endif
