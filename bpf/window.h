/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Read-ahead windows as they are issued, and those cut short: where a page of the window is there already, the kernel
 * reads around it, and what was one request to the device becomes several.
 */
#ifndef CACHETOP_WINDOW_H
#define CACHETOP_WINDOW_H

#include "latency.h"
#include "task.h"

/* The window of the account's row, which it has, has been filled as far as it will be. */
static __always_inline void close_window(struct account *a)
{
	struct window *w = &a->row->window;

	if (w->mapping && w->added < w->last - w->first + 1)
		COUNT(a, C_WINDOWS_CUT, 1);
	w->mapping = 0;
}

static __always_inline void open_window(struct account *a, u64 mapping, u64 first, u64 last, bool metadata)
{
	struct window *w = &a->row->window;
	struct histograms *h;

	/*
	 * page_cache_ra_order hands over to page_cache_ra_unbounded where a mapping has no large folios, and where it
	 * found a page that was there: the rest of the same window.
	 */
	if (w->mapping == mapping && first >= w->first && first <= w->last) {
		if (last > w->last)
			w->last = last;
		return;
	}
	close_window(a);
	w->mapping = mapping;
	w->first = first;
	w->last = last;
	w->added = 0;
	w->kind = collapses() | (metadata ? WINDOW_METADATA : 0);
	COUNT(a, C_WINDOWS, 1);
	/* The table has room for all rows where latency is requested, and only there. */
	h = with_latency ? histograms_of(a->row) : 0;
	if (h) {
		u32 n = log2_of(last - first + 1);

		h->window[n < WINDOW_BUCKETS ? n & (WINDOW_BUCKETS - 1) : WINDOW_BUCKETS - 1]++;
	}
}

/*
 * Whether what is added in the window is all ahead of what the thread has asked for. No request of it begins or ends before the window does,
 * but for one below, which has a window of its own or none. Reads and writes in progress have frames by now.
 */
static __always_inline bool is_all_ahead(struct row *row, struct thread *t)
{
	struct window *w = &row->window;
	struct frame *f;

	if (w->kind)
		return false;
	if (!row->depth)
		return true;
	f = frame_at(t, row->depth - 1);
	return f->mapping == w->mapping && f->kind <= F_READ && (w->first > f->last || w->last < f->first);
}

/*
 * Whether the pages come while the thread fills a window of this mapping. Mostly they lie in it. A folio may begin before it, where blocks are
 * larger than a page; and what was compressed together comes together (btrfs), whatever lies in the window.
 */
static __always_inline bool add_to_window(struct window *w, u64 mapping, u64 first, u64 last)
{
	if (w->mapping != mapping)
		return false;
	if (first < w->first)
		first = w->first;
	if (last > w->last)
		last = w->last;
	if (first <= last)
		w->added += last - first + 1;
	return true;
}

#endif
