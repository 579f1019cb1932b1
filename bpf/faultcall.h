/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Faults where functions cannot be attached. mm_filemap_fault says which page is looked up, mm_filemap_map_pages which
 * pages were just looked at around a fault; neither says how it ended. The thread's own count of faults does: it rises
 * when a fault has been served, and not when it is told to try again.
 */
#ifndef CACHETOP_FAULTCALL_H
#define CACHETOP_FAULTCALL_H

#include "pages.h"

enum fault_state { FAULT_NONE, FAULT_OPEN, FAULT_COUNTED };

/* The newest of a thread. */
struct faults {
	/* Looked up by filemap_fault. */
	u64 mapping;
	u64 index;
	u64 served; /* faults of the thread that had been served by then */
	u64 state;
	s64 nr; /* the system call that it happened in */
	struct file_held file;
	/* Mapped by filemap_map_pages, which may have served it or not. */
	u64 around;
	u64 first;
	u64 last;
	u64 around_served;
	u64 around_state;
	struct file_held around_file;
};

static __always_inline u64 served_to(struct task_struct *task)
{
	return task->min_flt + task->maj_flt;
}

/* Counts those that have been served since. Also run by the monitor, while the thread runs. */
static __always_inline void settle_faults(struct account *a, struct faults *f, u64 served)
{
	/* Before the state is changed: from then on the thread may write down its next fault. */
	struct file_held file = f->file, around = f->around_file;

	if (f->state == FAULT_OPEN && f->served != served &&
	    __sync_val_compare_and_swap(&f->state, FAULT_OPEN, FAULT_COUNTED) == FAULT_OPEN) {
		file_count(file_of_held(&file), FC_FAULT_HITS, 1);
		COUNT(a, C_FAULT_HITS, 1);
	}
	if (f->around_state == FAULT_OPEN && f->around_served != served &&
	    __sync_val_compare_and_swap(&f->around_state, FAULT_OPEN, FAULT_NONE) == FAULT_OPEN) {
		file_count(file_of_held(&around), FC_FAULT_HITS, 1);
		COUNT(a, C_FAULT_HITS, 1);
	}
}

static __always_inline bool faults_now(struct faults *f, u64 mapping, u64 served)
{
	return f->state != FAULT_NONE && f->served == served && f->mapping == mapping;
}

static __always_inline void on_looked_up(struct account *a, struct faults *f, u64 mapping, u64 index, u64 served,
					 s64 nr)
{
	settle_faults(a, f, served);
	/* It was not there to be mapped. */
	if (f->around_state == FAULT_OPEN && f->around == mapping && index >= f->first && index <= f->last)
		f->around_state = FAULT_NONE;
	if (faults_now(f, mapping, served) && f->index == index)
		return; /* tried again */
	f->mapping = mapping;
	f->index = index;
	f->served = served;
	f->nr = nr;
	if (with_files)
		f->file = file_hold(a->row, mapping);
	f->state = FAULT_OPEN;
}

static __always_inline void on_mapped_around(struct account *a, struct faults *f, u64 mapping, u64 first,
					     u64 last, u64 served)
{
	settle_faults(a, f, served);
	if (faults_now(f, mapping, served) && f->index >= first && f->index <= last)
		return; /* tried again, and counted or open already */
	f->around = mapping;
	f->first = first;
	f->last = last;
	f->around_served = served;
	if (with_files)
		f->around_file = file_hold(a->row, mapping);
	f->around_state = FAULT_OPEN;
}

/* The page was not there: the thread that faults adds it. */
static __always_inline void missed_by_fault(struct account *a, struct faults *f)
{
	if (__sync_val_compare_and_swap(&f->state, FAULT_OPEN, FAULT_COUNTED) == FAULT_OPEN) {
		file_count(file_of_held(&f->file), FC_FAULT_MISSES, 1);
		COUNT(a, C_FAULT_MISSES, 1);
	}
}

#endif
