/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A request that is put together from tracepoints: kept while it may go on, counted when it has ended (calls.h). */
#ifndef CACHETOP_CALL_H
#define CACHETOP_CALL_H

#include "pending.h"

/* The file of the request, as long as it has the row that it had. */
static __always_inline struct file_row *file_of_call(struct call *c)
{
	struct file_row *f;

	if (!with_files)
		return 0;
	if (c->file == NO_FILE)
		return 0; /* counted when there was no room */
	f = file_at(c->file);
	/* Or one that was put away since: it is read once more. */
	if (f && f->made == c->file_made && (f->mapping == c->mapping || f->state == FILE_ENDED))
		return f;
	count_one(C_LOST_FILES);
	return 0;
}

/* Tells one addition apart at the request; returns how much of it lies inside. Global: verified once. */
__noinline u64 settle_extent(struct call *c, u32 i)
{
	struct added p = {};
	struct account a;
	u64 f, l;

	if (!c || i >= MAX_EXTENTS || !account_call(&a, c))
		return 0;
	p.mapping = (void *)c->mapping;
	p.first = c->extent[i].first;
	p.last = c->extent[i].last;
	return split_added(&a, 0, &p, c->first, c->end, &f, &l, BITS);
}

/* Forgets the first `owned` extents. */
__noinline int drop_owned(struct call *c)
{
	u32 i, from;

	if (!c)
		return 0;
	for (i = 0; i < MAX_EXTENTS; i++) {
		from = c->owned + i;
		if (from >= c->extents || from >= MAX_EXTENTS)
			break;
		asm volatile(""
			     : "+r"(from)); /* keeps the mask below, which bounds the index for the verifier */
		c->extent[i] = c->extent[from & (MAX_EXTENTS - 1)];
	}
	c->extents = c->extents > c->owned ? c->extents - c->owned : 0;
	c->owned = 0;
	return 0;
}

/*
 * Pages that a request found read ahead, and that went before it used them: it brought them in itself, or found them read ahead once
 * more. What goes is looked for in the ledger, which these were taken out of.
 */
static __noinline void count_gone_before(struct call *c, u64 n)
{
	if (!is_metadata((void *)c->mapping))
		count_nobodys(C_PREFETCH_WASTED, n);
	RETURN_NOTHING();
}

/* Counts the pages of a request, of which so many were missing. */
static __always_inline void count_read(struct account *a, struct call *c, u64 missed)
{
	u64 touched = c->end - c->first + 1, ahead = c->ahead;
	struct file_row *f = file_of_call(c);

	if (missed > touched)
		missed = touched;
	if (unlikely(ahead > touched - missed)) {
		count_gone_before(c, ahead - (touched - missed));
		ahead = touched - missed;
	}
	file_covers(f, c->pos, c->bytes);
	file_read(f, c->bytes, touched - missed - ahead, ahead, missed);
	COUNT(a, C_READ_CALLS, 1);
	COUNT(a, C_READ_BYTES, c->bytes);
	COUNT(a, C_READ_HITS, touched - missed - ahead);
	if (missed) {
		COUNT(a, C_READ_MISSED_CALLS, 1);
		COUNT(a, C_READ_MISSES, missed);
		COUNT(a, C_MISS_FILLS, missed);
	}
	if (ahead)
		COUNT(a, C_READ_AHEAD_HITS, ahead);
	touch_read(a->row, c->mapping, c->first, c->end, c->bytes, missed + ahead);
}

/* Counts a request that has ended; its additions are told apart now. */
__noinline int settle(struct call *c)
{
	struct account a;
	u64 missed = 0;
	u32 i;

	if (!c || !account_call(&a, c))
		return 0;
	for (i = 0; i < MAX_EXTENTS; i++) {
		if (i >= c->owned)
			break;
		missed += settle_extent(c, i);
	}
	drop_owned(c);
	if (c->first > c->end)
		return 0;
	if (!c->by_syscall || c->marked)
		missed += ledger_take(c->mapping | DEMANDED, c->first, c->end, BITS);
	c->marked = false;
	/* What others prefetched while the call ran is used now; if all is accounted for, it came later. */
	if (missed + c->ahead < c->end - c->first + 1)
		c->ahead += ledger_take(c->mapping, c->first, c->end, BITS);
	count_read(&a, c, missed);
	return 0;
}

static __always_inline bool is_pending(struct call *c)
{
	return (*(volatile u64 *)&c->state & CALL_STATE) == PENDING;
}

/* The call has ended: what its thread added in it after the last event is its own. */
static __always_inline void own_rest(struct call *c)
{
	if (c->by_syscall && c->extent_mapping == c->mapping && c->extent_syscr == c->syscr)
		c->owned = c->extents;
}

/* See hold_call. */
static __noinline bool hold_pending(struct call *c)
{
	u64 word = *(volatile u64 *)&c->state, counted = word & ~(u64)CALL_STATE;

	if ((word & CALL_STATE) == PENDING && __sync_val_compare_and_swap(&c->state, word, counted) == word)
		return true;
	/* The same as the tick has counted. Of a call by its number of the system call: that had ended by then. */
	own_rest(c);
	drop_owned(c);
	c->marked = false;
	*(volatile u64 *)&c->state = counted;
	return false;
}

/*
 * By the thread, before it changes the request (pending.h): from here on the tick leaves it alone. True: it was pending,
 * and is to be counted or to wait again.
 */
static __always_inline bool hold_call(struct call *c)
{
	return unlikely(*(volatile u64 *)&c->state & CALL_CHANGES) && hold_pending(c);
}

/* The request may be counted by whoever sees first that it has ended. Not before all of it is there. */
static __always_inline void await_end(struct call *c)
{
	asm volatile("" ::: "memory");
	*(volatile u64 *)&c->state = (c->state & ~(u64)CALL_STATE) + NEXT_CALL + PENDING;
	note_unsettled(c);
}

/* The thread reads no more in this call, or not at all. */
static __always_inline void end_call(struct call *c)
{
	if (!hold_call(c))
		return;
	own_rest(c);
	settle(c);
}

__noinline int flush_extent(struct call *c, u32 i)
{
	struct account a;

	if (!c || i >= MAX_EXTENTS || !account_call(&a, c))
		return 0;
	if (c->leftover_is_readahead)
		count_prefetch(&a, 0, c->extent_mapping, c->extent[i].first, c->extent[i].last, BITS,
			       TOUCH_AHEAD);
	else
		COUNT(&a, C_OTHER_FILLS, c->extent[i].last - c->extent[i].first + 1);
	return 0;
}

/* Additions that no read came for: a call that failed, or not a read at all. */
__noinline int flush_extents(struct call *c)
{
	u32 i;

	if (!c)
		return 0;
	for (i = 0; i < MAX_EXTENTS; i++) {
		if (i >= c->extents)
			break;
		if (i >= c->owned)
			flush_extent(c, i);
	}
	c->extents = c->owned;
	return 0;
}

/* Additions to a request that has been counted: their pages went while it was read, or the tick was early. */
static __always_inline void added_late(struct call *c)
{
	if (!c->extents)
		return;
	c->leftover_is_readahead = false;
	flush_extents(c);
}

/* If the thread is in another call than the pending one, that has ended, and what it added last is its own. */
static __always_inline void end_older_call(struct call *c, u64 syscr)
{
	u64 state = *(volatile u64 *)&c->state & CALL_STATE;

	if (state == TAKEN || (state == PENDING && c->by_syscall && c->syscr != syscr))
		end_call(c);
}

/* `ahead`: what no look-up comes for has been read ahead; otherwise it is nobody's. */
static __always_inline void remember_extent(struct call *c, u64 mapping, u64 syscr, u64 first, u64 last,
					    bool ahead)
{
	u32 n;

	end_older_call(c, syscr);
	if (c->extents > c->owned && (c->extent_mapping != mapping || c->extent_syscr != syscr))
		flush_extents(c);
	c->leftover_is_readahead = ahead;
	c->extent_mapping = mapping;
	c->extent_syscr = syscr;
	n = c->extents;
	if (n > c->owned && n <= MAX_EXTENTS && c->extent[(n - 1) & (MAX_EXTENTS - 1)].last + 1 == first) {
		c->extent[(n - 1) & (MAX_EXTENTS - 1)].last = last;
		return;
	}
	if (n >= MAX_EXTENTS && !c->leftover_is_readahead) {
		/* Not for a read, as far as can be told: no event will come for these. */
		flush_extents(c);
		n = c->extents;
	}
	if (n >= MAX_EXTENTS) {
		ledger_set(mapping | DEMANDED, first, last, BITS);
		c->marked = true;
		return;
	}
	c->extent[n & (MAX_EXTENTS - 1)].first = first;
	c->extent[n & (MAX_EXTENTS - 1)].last = last;
	c->extents = n + 1;
}

#endif
