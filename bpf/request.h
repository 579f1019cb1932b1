/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests where functions can be attached. A read is counted when it returns: its range ends where the position
 * stands and is as long as what was delivered. A warm read needs nothing else. One that does not find its pages asks
 * for read-ahead, which names the rest of its range: from there on it has a frame on the thread's stack, and what the
 * thread adds is told apart by it (inside: missed; outside: read ahead). Requests that must be known from their
 * beginning get their frame there.
 */
#ifndef CACHETOP_REQUEST_H
#define CACHETOP_REQUEST_H

#include "ahead.h"
#include "read.h"

/*
 * By nobody's request: read-ahead, or what is no reading at all, as what is brought in outside of a window is none, nor what
 * somebody has had collapsed.
 */
static __always_inline void added_alone(struct account *a, struct window *w, struct added *p,
					enum collapse collapse, enum ledger_mode mode)
{
	if (collapse == NO_COLLAPSE)
		count_prefetch(a, w, (u64)p->mapping, p->first, p->last, mode, TOUCH_AHEAD);
	else if (collapse == COLLAPSE_BY_KERNEL)
		count_collapsed(a, p);
	else
		COUNT(a, C_OTHER_FILLS, p->last - p->first + 1);
}

/* Where pages of a window that is not all ahead lie. Those of the request are noted with it. */
enum added_to { AHEAD, REQUEST, ELSEWHERE };

static __always_inline enum added_to lies_in(struct row *row, struct added *p)
{
	struct thread *t;
	struct frame *f;

	/* A read that is counted later has its frame since the window began. */
	if (row->writing | row->plain_bytes) {
		if (row->writing || !with_plain || row->plain_framed != PLAIN_FRAMED)
			return ELSEWHERE;
	}
	if (!row->depth)
		return AHEAD;
	t = thread_of(row);
	if (!t)
		return ELSEWHERE;
	f = frame_at(t, row->depth - 1);
	if (f->mapping != (u64)p->mapping || f->kind > F_READ)
		return ELSEWHERE;
	if (p->first > f->last || p->last < f->first)
		return AHEAD;
	if (p->first < f->first || p->last > f->last)
		return ELSEWHERE; /* in both */
	note_added(f, p->first, p->last, p->last - p->first + 1);
	return REQUEST;
}

/*
 * mm_filemap_add_to_page_cache in what nearly all additions are: pages of the window that the thread is filling, for the read that it is
 * in, or all of them ahead of it. False: it is something else, and nothing has changed.
 */
static __always_inline bool added_in_window(struct row *row, void *folio, u32 order, enum folio_from from,
					    enum ledger_mode mode)
{
	struct window *w = &row->window;
	struct account a = {.row = row};
	enum added_to to;
	struct added p;

	added_of(&p, row, folio, order, from);
	/* Of these neither metadata nor huge pages are. */
	if (w->mapping != (u64)p.mapping || p.first < w->first || p.last > w->last)
		return false;
	if (w->kind != WINDOW_AHEAD) {
		to = w->kind ? ELSEWHERE : lies_in(row, &p);
		if (to == ELSEWHERE)
			return false;
		if (to == REQUEST) {
			w->added += 1 << (order & 31);
			file_of_folio(row, folio, p.mapping, from);
			return true;
		}
	}
	w->added += 1 << (order & 31);
	count_prefetch_of(&a, w, file_of_folio(row, folio, p.mapping, from), (u64)p.mapping, p.first, p.last,
			  mode, TOUCH_AHEAD);
	return true;
}

/* Otherwise: told apart by the request that the thread is in. `row` may be null. */
static __always_inline void added_otherwise(struct row *row, void *folio, u32 order, enum folio_from from,
					    enum ledger_mode mode)
{
	struct thread *t = row ? thread_of(row) : 0;
	struct window *w = t ? &row->window : 0;
	struct frame *f = 0;
	struct account a;
	struct added p;
	u64 first, last, n;
	bool ahead = false;

	if (!account_in(&a, row))
		return;
	if (!look_at_added(&p, &a, folio, order, from))
		return;
	if (row && t) {
		ahead = add_to_window(&row->window, (u64)p.mapping, p.first, p.last);
		f = frame_on(row, t, (u64)p.mapping);
	}
	if (!f && (ahead ? row->window.kind & WINDOW_METADATA : folio_is_metadata(folio, p.mapping, from))) {
		block_added(&a, t, (u64)p.mapping, p.first, p.last, mode);
		return;
	}
	if (!f) {
		added_alone(&a, w, &p, ahead ? row->window.kind & WINDOW_COLLAPSE : COLLAPSE_BY_ADVICE, mode);
		return;
	}
	if (f->kind == F_FAULT) {
		added_by_fault(&a, w, &p, f->pos, mode);
		return;
	}
	if (f->kind == F_WRITE) {
		added_by_write(&a, f, &p);
		return;
	}
	n = split_added(&a, w, &p, f->first, f->last, &first, &last, mode);
	if (!n)
		return;
	note_added(f, first, last, n);
}

#endif
