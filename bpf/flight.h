/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Pages in flight: a read finds the page, but somebody else is still reading it from the device, and waits. The
 * function that waits (folio_wait_bit_common; wait_on_page_bit_common before 5.16) and those around it are inlined or
 * closed to probes. The one that it sleeps by is not: io_schedule, which finds the entry of the wait queue, and in
 * it the page, on the stack of its caller. A warm read does not come here.
 */
#ifndef CACHETOP_FLIGHT_H
#define CACHETOP_FLIGHT_H

#include "thread.h"
#include "tried.h"

/* The address of wake_page_function, which is in the entry of everybody who waits for a page. Set before load. */
const volatile u64 wake_page_at = 0;

/*
 * struct wait_page_queue as words: page, bit number, then the entry of the queue: flags, task, function. Its layout
 * has been this since 4.13; the task and the function say where it is, and that it is this.
 */
enum { Q_FUNCTION = 0, Q_TASK = -1, Q_FLAGS = -2, Q_BIT = -3, Q_PAGE = -4, Q_BEFORE = 4 };

#define FRAME_WORDS                                                                                             \
	44 /* that far up the stack it is looked for: more than one frame, less than BPF has room for */
#define EXCLUSIVE 1 /* WQ_FLAG_EXCLUSIVE: this one wants the lock. A read only waits until it is released */

enum pageflags___uptodate {
	PG_uptodate___uptodate = 0,
};

/*
 * Read calls that the running thread has ended: what tells a wait of this call from one of a call before. Without
 * CONFIG_TASK_XACCT nobody counts them; the file and the pages must do then.
 */
static __always_inline u64 reads_ended(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->ioac.syscr))
		return 0;
	return BPF_CORE_READ(task, ioac.syscr);
}

static __always_inline void note_flight(struct row *row, struct thread *t, void *folio)
{
	struct flight *w = &t->flight;
	struct address_space *m = folio_mapping_of(folio);
	u64 flags = 0, first, last, mapping = (u64)m;
	u64 syscr = reads_ended();
	struct frame *f;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!m || flags >> bpf_core_enum_value(enum pageflags___uptodate, PG_uptodate___uptodate) & 1)
		return;
	first = folio_index_of(folio);
	last = first + (1ULL << (folio_order_of(folio) & 31)) - 1;
	f = frame_on(row, t, mapping);
	if (f) {
		if (f->kind != F_READ && f->kind != F_NAMED)
			return;
		/* What this read has itself asked the device for is a miss. */
		if (f->added && last >= f->added_first && first <= f->added_last)
			return;
	}
	if (!row->waited || w->mapping != mapping || w->syscr != syscr) {
		w->mapping = mapping;
		w->syscr = syscr;
		w->first = first;
		w->first_end = last;
		w->between = 0;
		w->last = first;
		w->last_end = last;
		row->waited = 1;
		if (with_tried)
			send_late(mapping, first, last);
		return;
	}
	/* Again, after it was woken for nothing. Reads go upwards. */
	if (first <= w->last)
		return;
	if (w->last != w->first)
		w->between += w->last_end - w->last + 1;
	w->last = first;
	w->last_end = last;
	if (with_tried)
		send_late(mapping, first, last);
}

/*
 * The page that the running thread is about to wait for, as a number; 0: none. `sp` is where the return address is; `locks`:
 * also if it wants the lock for itself. Apart, since with what the stack is read into there would be too little of it left to make a row.
 */
static __noinline u64 waited_for(u64 sp, bool locks)
{
	u64 word[FRAME_WORDS], task = bpf_get_current_task();
	u32 i;

	if (bpf_probe_read_kernel(word, sizeof(word), (void *)sp))
		return 0;
#pragma unroll
	for (i = Q_BEFORE; i < FRAME_WORDS; i++) {
		if (word[i + Q_FUNCTION] == wake_page_at && word[i + Q_TASK] == task) {
			/* Bit 0 is the lock. */
			if (!(u32)word[i + Q_BIT] && (locks || !((u32)word[i + Q_FLAGS] & EXCLUSIVE)))
				return word[i + Q_PAGE];
			return 0;
		}
	}
	return 0;
}

/* io_schedule() at its entry. */
static __always_inline void on_wait(u64 sp)
{
	struct thread *t;
	struct row *row;
	u64 folio;

	if (!ready || !wake_page_at)
		return;
	folio = waited_for(sp, false);
	if (!folio)
		return;
	row = own_row(true);
	t = row ? thread_of(row) : 0;
	if (t)
		note_flight(row, t, (void *)folio);
}

static __always_inline u64 overlap(u64 first, u64 last, u64 from, u64 to)
{
	if (first < from)
		first = from;
	if (last > to)
		last = to;
	return first <= last ? last - first + 1 : 0;
}

/* Pages of [first, last] in which the thread's waits lie. */
static __always_inline u64 waited_in(struct flight *w, u64 first, u64 last)
{
	u64 n = overlap(w->first, w->first_end, first, last);

	if (w->last == w->first)
		return n;
	return n + w->between + overlap(w->last, w->last_end, first, last);
}

/* Pages of [first, last] that the read which ends now has waited for. Others' waits are forgotten. */
static __always_inline u64 end_flight(struct row *row, u64 mapping, u64 first, u64 last)
{
	struct flight *w;
	struct thread *t;

	if (!wake_page_at || !row->waited)
		return 0;
	t = thread_of(row);
	if (!t)
		return 0;
	w = &t->flight;
	if (with_plain && row->plain_framed && !row->plain_writes && w->syscr == row->plain_calls)
		return 0; /* of the one that is still to be counted */
	row->waited = 0;
	if (w->mapping != mapping || w->syscr != reads_ended())
		return 0;
	return waited_in(w, first, last);
}

#endif
