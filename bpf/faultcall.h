/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Faults where functions cannot be attached. mm_filemap_fault says which page is looked up, mm_filemap_map_pages which
 * pages were just looked at around a fault; neither says how it ended. The thread's own count of faults does: it rises
 * when a fault has been served, and not when it is told to try again.
 */
#ifndef CACHETOP_FAULTCALL_H
#define CACHETOP_FAULTCALL_H

#include "pages.h"

/* Below a number of the fault, as with requests (pending.h): the tick counts only what it has looked at. */
enum fault_state { FAULT_NONE, FAULT_OPEN, FAULT_COUNTED };
#define FAULT_STATE 3
#define NEXT_FAULT 4

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

static __always_inline bool is_open(u64 state)
{
	return (state & FAULT_STATE) == FAULT_OPEN;
}

/* True for one alone, if the fault is still the one whose state was `seen`, and open. */
static __always_inline bool close_fault(u64 *state, u64 seen, enum fault_state to)
{
	return is_open(seen) &&
	       __sync_val_compare_and_swap(state, seen, (seen & ~(u64)FAULT_STATE) + to) == seen;
}

/* The thread is about to write down another. */
static __always_inline void hold_fault(u64 *state)
{
	*(volatile u64 *)state = *(volatile u64 *)state & ~(u64)FAULT_STATE;
	asm volatile("" ::: "memory");
}

static __always_inline void open_fault(u64 *state)
{
	asm volatile("" ::: "memory");
	*(volatile u64 *)state = (*(volatile u64 *)state & ~(u64)FAULT_STATE) + NEXT_FAULT + FAULT_OPEN;
}

/* Counts those that have been served since. `f` is the thread's own, or what the tick has copied of `of`. */
static __always_inline void settle_faults(struct account *a, struct faults *of, struct faults *f, u64 served)
{
	if (f->served != served && close_fault(&of->state, f->state, FAULT_COUNTED)) {
		file_count(file_of_held(&f->file), FC_FAULT_HITS, 1);
		COUNT(a, C_FAULT_HITS, 1);
		touch(a->row, f->mapping, f->index, f->index, TOUCH_FAULT | TOUCH_HIT);
	}
	if (f->around_served != served && close_fault(&of->around_state, f->around_state, FAULT_NONE)) {
		file_count(file_of_held(&f->around_file), FC_FAULT_HITS, 1);
		COUNT(a, C_FAULT_HITS, 1);
	}
}

static __always_inline bool faults_now(struct faults *f, u64 mapping, u64 served)
{
	return (f->state & FAULT_STATE) != FAULT_NONE && f->served == served && f->mapping == mapping;
}

static __always_inline void on_looked_up(struct account *a, struct faults *f, u64 mapping, u64 index, u64 served,
					 s64 nr)
{
	settle_faults(a, f, f, served);
	/* It was not there to be mapped. */
	if (is_open(f->around_state) && f->around == mapping && index >= f->first && index <= f->last)
		hold_fault(&f->around_state);
	if (faults_now(f, mapping, served) && f->index == index)
		return; /* tried again */
	hold_fault(&f->state);
	f->mapping = mapping;
	f->index = index;
	f->served = served;
	f->nr = nr;
	if (with_files)
		f->file = file_hold(a->row, mapping, 0);
	open_fault(&f->state);
}

static __always_inline void on_mapped_around(struct account *a, struct faults *f, u64 mapping, u64 first,
					     u64 last, u64 served)
{
	settle_faults(a, f, f, served);
	if (faults_now(f, mapping, served) && f->index >= first && f->index <= last)
		return; /* tried again, and counted or open already */
	hold_fault(&f->around_state);
	f->around = mapping;
	f->first = first;
	f->last = last;
	f->around_served = served;
	if (with_files)
		f->around_file = file_hold(a->row, mapping, 0);
	open_fault(&f->around_state);
}

/* The page was not there: the thread that faults adds it. */
static __always_inline void missed_by_fault(struct account *a, struct faults *f)
{
	if (close_fault(&f->state, f->state, FAULT_COUNTED)) {
		file_count(file_of_held(&f->file), FC_FAULT_MISSES, 1);
		COUNT(a, C_FAULT_MISSES, 1);
		touch(a->row, f->mapping, f->index, f->index, TOUCH_FAULT | TOUCH_MISSED);
	}
}

#endif
