/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Plain faults: nearly all, of pages that are there. filemap_map_pages maps what is there around a fault; if the page of the
 * fault is among it, that was all, else filemap_fault, or shmem_fault, comes next in the same thread. So where a hook at the
 * return is most of what a fault costs, there is one at the entry only. It leaves in the thread's row how many of its faults had
 * been served.
 *
 * The thread settles it at its next fault: it was none, or was not served, if the number is still the same. Of a thread that
 * has no more, and of a row that was ended, the tick counts it. Who takes it out of the row counts it.
 */
#ifndef CACHETOP_PLAINFAULT_H
#define CACHETOP_PLAINFAULT_H

#include "file.h"
#include "thread.h"

#define S_DAX (1 << 13)

static __always_inline bool take_plain_fault(struct row *row, u64 fault)
{
	return __sync_val_compare_and_swap(&row->plain_fault, fault, 0) == fault;
}

static __always_inline void count_plain_fault(struct row *row, struct file_held *file)
{
	struct account a = {.row = row};

	file_count(file_of_held(file), FC_FAULT_HITS, 1);
	COUNT(&a, C_FAULT_HITS, 1);
}

/* The running thread is at its next fault, or at the next step of the same one, for which the page was not there. */
static __always_inline void settle_plain_fault(struct row *row, struct thread *t)
{
	u64 fault = *(volatile u64 *)&row->plain_fault;

	if (!with_plain_faults || !fault)
		return;
	if (fault >> PLAIN_FAULT_SHIFT == served_to(bpf_get_current_task_btf())) {
		row->plain_fault = 0;
	} else if (fault & PLAIN_FAULT_AGAIN) {
		/* Nobody else takes one of these. */
		row->plain_fault = 0;
		t->again.mapping = 0;
	} else if (take_plain_fault(row, fault)) {
		count_plain_fault(row, &t->fault_file);
	}
}

/* filemap_map_pages(vmf, first, last). Told to try again, it comes back for the same page, which has been counted. */
static __always_inline void begin_plain_fault(struct row *row, struct vm_fault *vmf)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(row);
	struct file *opened = vmf->vma->vm_file;
	u64 mapping = number_of(row, opened->f_mapping), fault = PLAIN_FAULT;

	if (!t)
		return;
	settle_plain_fault(row, t);
	/* Nothing of it is in the cache, and xfs maps it by a function of its own. */
	if (opened->f_mapping->host->i_flags & S_DAX)
		return;
	if (with_files)
		t->fault_file = file_hold(row, mapping, number_of(row, opened));
	if (t->again.mapping == mapping && t->again.index == vmf->pgoff)
		fault |= PLAIN_FAULT_AGAIN;
	t->fault_task = (u64)task;
	barrier();
	*(volatile u64 *)&row->plain_fault = served_to(task) << PLAIN_FAULT_SHIFT | fault;
}

/* At the tick. The thread may go on meanwhile; once its fault has been served, what belongs to that changes only with the fault. */
static __always_inline void look_at_plain_fault(struct row *row)
{
	u64 fault = *(volatile u64 *)&row->plain_fault;
	struct task_struct *task;
	struct file_held file;
	struct thread *t;

	if (!fault || fault & PLAIN_FAULT_AGAIN)
		return;
	t = thread_of(row);
	if (!t)
		return;
	if (row->state != ROW_ENDED) {
		task = bpf_core_cast((void *)t->fault_task, struct task_struct);
		/* Another one where it was: it is gone. */
		if (task->start_time != row->began || fault >> PLAIN_FAULT_SHIFT == served_to(task))
			return;
	}
	file = t->fault_file;
	barrier();
	if (take_plain_fault(row, fault))
		count_plain_fault(row, &file);
}

#endif
