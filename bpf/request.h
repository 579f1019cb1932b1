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
static __always_inline void added_alone(struct account *a, struct added *p, enum collapse collapse,
					enum ledger_mode mode)
{
	if (collapse == NO_COLLAPSE)
		count_prefetch(a, (u64)p->mapping, p->first, p->last, mode, TOUCH_AHEAD);
	else if (collapse == COLLAPSE_BY_KERNEL)
		count_collapsed(a, p);
	else
		COUNT(a, C_OTHER_FILLS, p->last - p->first + 1);
}

/* mm_filemap_add_to_page_cache: told apart by the request that the thread is in. */
static __always_inline void on_add(void *folio, u32 order, enum folio_from from, enum ledger_mode mode)
{
	struct thread *t = 0;
	struct frame *f = 0;
	struct account a;
	struct added p;
	u64 first, last, n;
	bool ahead = false;

	if (!look_at_added(&p, &a, folio, order, from))
		return;
	if (a.row)
		t = thread_of(a.row);
	if (t) {
		add_to_window(t, (u64)p.mapping, p.first, p.last);
		ahead = in_window(t, (u64)p.mapping, p.first);
		f = frame_on(a.row, t, (u64)p.mapping);
	}
	if (!f && (ahead ? t->window.metadata : folio_is_metadata(folio, p.mapping, from))) {
		block_added(&a, t, (u64)p.mapping, p.first, p.last, mode);
		return;
	}
	if (!f) {
		added_alone(&a, &p, ahead ? t->window.collapse : COLLAPSE_BY_ADVICE, mode);
		return;
	}
	if (f->kind == F_FAULT) {
		added_by_fault(&a, &p, f->pos, mode);
		return;
	}
	if (f->kind == F_WRITE) {
		added_by_write(&a, f, &p);
		return;
	}
	n = split_added(&a, &p, f->first, f->last, &first, &last, mode);
	if (!n)
		return;
	note_added(f, first, last, n);
}

#endif
