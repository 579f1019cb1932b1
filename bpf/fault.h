/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Page faults on file mappings. filemap_map_pages maps what is in the cache around a fault, the page of the fault
 * among it if that is there; else filemap_fault looks the page up, and reads it in.
 */
#ifndef CACHETOP_FAULT_H
#define CACHETOP_FAULT_H

#include "plainfault.h"
#include "request.h"

/* enum vm_fault_reason, the same numbers on all kernels since 5.1. */
#define FAULT_ERROR (0x1 | 0x2 | 0x10 | 0x20 | 0x40 | 0x800)
#define FAULT_MAJOR 0x4
#define FAULT_NOPAGE 0x100
#define FAULT_RETRY 0x400

static __always_inline void enter_fault_of(struct row *row, struct thread *t, struct vm_fault *vmf,
					   enum ledger_mode mode)
{
	u64 mapping, index = vmf->pgoff;
	struct frame *f;

	mapping = number_of(row, vmf->vma->vm_file->f_mapping);
	/* While it is at hand which file is mapped: its pages come before the fault is counted. */
	file_used(row, vmf->vma->vm_file->f_mapping, mapping, vmf->vma->vm_file);
	f = push_frame(row, t, F_FAULT, mapping, index);
	f->pos = index;
	if (mode == BITS)
		used_by_fault(mapping, index, index);
	else
		ledger_take(mapping, index, index, mode);
}

static __always_inline void enter_fault(struct vm_fault *vmf, enum ledger_mode mode)
{
	struct row *row = own_row(true);
	struct thread *t = row ? thread_of(row) : 0;

	if (t)
		enter_fault_of(row, t, vmf, mode);
}

/* A fault that was served: once, however often it was tried. Told to try again, it comes back for the same page. */
static __always_inline void count_fault(struct account *a, struct thread *t, u64 mapping, u64 index, u32 ret,
					struct file *opened)
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
	file_count(file_seen(a->row, mapping, opened ? number_of(a->row, opened) : 0),
		   ret & FAULT_MAJOR ? FC_FAULT_MISSES : FC_FAULT_HITS, 1);
	if (ret & FAULT_MAJOR)
		COUNT(a, C_FAULT_MISSES, 1);
	else
		COUNT(a, C_FAULT_HITS, 1);
	touch(a->row, mapping, index, index, TOUCH_FAULT | (ret & FAULT_MAJOR ? TOUCH_MISSED : TOUCH_HIT));
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
	count_fault(&a, t, f->mapping, f->pos, ret, 0);
}

/* Pages that this thread has mapped: what our hooks saw, and the kernel's count where it keeps one for each thread. */
static __always_inline u64 mapped_by(struct thread *t)
{
	struct task_struct___split *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(struct task_struct___split, rss_stat))
		return t->mapped;
	return t->mapped + (s64)BPF_CORE_READ(task, rss_stat.count[MM_FILEPAGES]) +
	       (s64)BPF_CORE_READ(task, rss_stat.count[MM_SHMEMPAGES]);
}

/* Only where somebody wants to know how many pages are mapped around faults. */
static __always_inline void enter_map_pages(struct row *row)
{
	struct thread *t = row ? thread_of(row) : 0;

	if (!t)
		return;
	t->mapped_before = mapped_by(t);
	t->mapping = 1;
}

static __always_inline void used_unseen(struct row *row, struct vm_fault *vmf, u64 first, u64 last,
					enum ledger_mode mode)
{
	if (!row)
		return;
	if (mode == BITS)
		used_by_fault(number_of(row, vmf->vma->vm_file->f_mapping), first, last);
	else
		ledger_take(number_of(row, vmf->vma->vm_file->f_mapping), first, last, mode);
}

/* The page was there and is mapped now (served), or not, with what stood around it. */
static __always_inline void exit_map_pages(struct account *a, struct vm_fault *vmf, bool served)
{
	struct thread *t;
	u64 mapped;

	if (!a->row)
		return;
	t = thread_of(a->row);
	if (!t)
		return;
	if (t->mapping) {
		t->mapping = 0;
		mapped = mapped_by(t) - t->mapped_before;
		if (mapped && served)
			mapped--;
		if (mapped)
			COUNT(a, C_FAULT_AROUND, mapped);
	}
	if (served)
		count_fault(a, t, number_of(a->row, vmf->vma->vm_file->f_mapping), vmf->pgoff, 0,
			    vmf->vma->vm_file);
}

/*
 * Before 5.12, filemap_map_pages did not say whether it has served the fault, and its caller looked for itself: the
 * entry of the page is there. The function moves vmf->pte and vmf->address along together, and still holds the lock.
 */
static __always_inline bool served_old(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	u64 address = vma->vm_start + ((vmf->pgoff - vma->vm_pgoff) << PAGE_SHIFT), entry = 0;
	s64 moved = (s64)(vmf->address - address) >> PAGE_SHIFT;
	u64 pte = 0;

	bpf_probe_read_kernel(&entry, sizeof(entry), vmf->pmd);
	if (entry & ENTRY_PRESENT && entry & ENTRY_HUGE)
		return true;
	bpf_probe_read_kernel(&pte, sizeof(pte), &vmf->pte);
	if (!pte)
		return false;
	entry = 0;
	bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(pte - moved * sizeof(entry)));
	return entry;
}

/*
 * set_pte_range and do_set_pmd: pages of a file are mapped. Outside of filemap_map_pages it is the page that
 * filemap_fault or shmem_fault found, and the rest of its folio.
 */
static __always_inline void on_mapped(u64 pages)
{
	struct account a = {.row = own_row(false)};
	struct thread *t = a.row ? thread_of(a.row) : 0;

	if (!t)
		return;
	if (!with_plain_faults && t->mapping)
		t->mapped += pages;
	else if (pages > 1)
		COUNT(&a, C_FAULT_AROUND, pages - 1);
}

/* set_pte_range(vmf, folio, page, pages, address): where nobody knows whether that is around a fault, the page of the fault may be apart. */
static __always_inline void on_mapped_at(struct vm_fault *vmf, u64 pages, u64 address)
{
	struct account a;

	if (!with_plain_faults) {
		on_mapped(pages);
		return;
	}
	pages -= vmf->address - address < pages << PAGE_SHIFT;
	a.row = own_row(false);
	a.nobody = 0;
	if (pages)
		COUNT(&a, C_FAULT_AROUND, pages);
}

/* shmem_fault: tmpfs finds its pages by itself, or makes them. */
static __always_inline void exit_shmem_fault(struct vm_fault *vmf, u32 ret, enum ledger_mode mode)
{
	struct account a;
	struct thread *t;
	u64 mapping;

	if (!account_open(&a) || !a.row)
		return;
	t = thread_of(a.row);
	if (!t)
		return;
	mapping = number_of(a.row, vmf->vma->vm_file->f_mapping);
	ledger_take(mapping, vmf->pgoff, vmf->pgoff, mode);
	count_fault(&a, t, mapping, vmf->pgoff, ret, vmf->vma->vm_file);
}

#endif
