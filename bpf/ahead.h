/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Read-ahead where functions can be attached: it names the rest of a read, and fills windows. */
#ifndef CACHETOP_AHEAD_H
#define CACHETOP_AHEAD_H

#include "meta.h"
#include "window.h"

/* page_cache_sync_ra and page_cache_async_ra: a read that has not found all its pages says how far it goes. */
static __always_inline void name_read(struct readahead_control *ractl, u64 count)
{
	struct address_space *m = ractl->mapping;
	struct file *file = ractl->file;
	u64 mapping, first = ractl->_index, end;
	struct thread *t;
	struct frame *f;
	struct row *row;

	/* Directories of ext4 are read ahead on the block device's mapping. Not a read of that. */
	if (!count || !file)
		return;
	if (file->f_mapping != m) {
		directory_block_wanted(m, first);
		return;
	}
	if (collapses())
		return;
	/*
	 * What lies behind the end of the file is delivered to nobody: a tree of hashes (fs-verity), which comes in meanwhile. Old kernels read
	 * one page ahead there.
	 */
	if (bpf_core_type_exists(struct folio)) {
		end = pages_in(m->host->i_size);
		if (first >= end)
			return;
		if (count > end - first)
			count = end - first;
	}
	row = own_row(true);
	t = row ? thread_of(row) : 0;
	if (!t)
		return;
	mapping = number_of(row, m);
	file_used(row, m, mapping, file);
	f = frame_on(row, t, mapping);
	if (!f) {
		f = push_frame(row, t, F_NAMED, mapping, 0);
		f->first = first;
		f->last = first + count - 1;
	} else if (f->kind == F_NAMED) {
		if (first < f->first)
			f->first = first;
		if (first + count - 1 > f->last)
			f->last = first + count - 1;
	}
}

/* page_cache_ra_unbounded and page_cache_ra_order: a window is filled. */
static __always_inline void enter_window(struct readahead_control *ractl, u64 pages)
{
	struct account a;
	struct thread *t;
	struct window *w;
	u64 first = ractl->_index;

	if (!pages || !account_open(&a) || !a.row)
		return;
	w = &a.row->window;
	t = thread_of(a.row);
	if (!t)
		return;
	need_frames(a.row, t); /* which those who add its pages rely on */
	open_window(&a, number_of(a.row, ractl->mapping), first, first + pages - 1,
		    known_is_metadata(ractl->mapping));
	/* It may be the rest of one, and reach farther than the beginning. */
	w->kind &= ~WINDOW_AHEAD;
	if (is_all_ahead(a.row, t))
		w->kind |= WINDOW_AHEAD;
}

/* They have returned: all pages of the window that were missing are there. */
static __always_inline void exit_window(void)
{
	struct account a = {.row = own_row(false)};

	if (a.row)
		close_window(&a);
}

/* page_cache_ra_order(ractl, ra): as far as the file goes. */
static __always_inline void enter_window_order(struct readahead_control *ractl, struct file_ra_state *ra)
{
	u64 end = pages_in(ractl->mapping->host->i_size), first = ractl->_index, size = ra->size;

	if (first >= end)
		return;
	enter_window(ractl, size < end - first ? size : end - first);
}

#endif
