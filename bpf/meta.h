/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Metadata in a block device's own mapping: directories, inode tables, bitmaps and extent blocks of ext4 and of the
 * others that work with buffers.
 *
 * An access is one request for a block's buffer (__getblk_gfp, from 6.7 bdev_getblk), which looks its page up in the
 * device's mapping and adds it where it is missing. It counts the pages that the block covers: one for a block that is
 * no larger than a page. A request that only reads ahead is none: its page waits in the ledger for its first use.
 */
#ifndef CACHETOP_META_H
#define CACHETOP_META_H

#include "thread.h"

#define MAY_WAIT 0x400U /* __GFP_DIRECT_RECLAIM, the same bit on all kernels since 4.4 */

/* page_cache_sync_ra on another mapping than the file's: ext4 is about to look up a block of a directory. */
static __always_inline void directory_block_wanted(struct address_space *mapping, u64 index)
{
	struct row *row = own_row(true);
	struct thread *t = row ? thread_of(row) : 0;

	if (!t)
		return;
	t->block.wanted_in = number_of(row, mapping);
	t->block.wanted = index;
}

/* Pages are added to a mapping of metadata, and no read, write or fault of this thread requested them. */
static __always_inline void block_added(struct account *a, struct thread *t, u64 mapping, u64 first, u64 last,
					enum ledger_mode mode)
{
	COUNT(a, C_META_FILLS, last - first + 1);
	if (!t || !ready)
		return;
	if (a->row && in_window(&a->row->window, mapping, first) &&
	    !(t->block.wanted_in == mapping && t->block.wanted >= first && t->block.wanted <= last)) {
		ledger_set(mapping, first, last, mode);
		return;
	}
	/* For the look-up that is under way, or that comes next. */
	t->block.mapping = mapping;
	t->block.first = first;
	t->block.last = last;
}

/* Whether this thread added any of these pages, and this has not been reported yet. */
static __always_inline bool block_take_added(struct thread *t, u64 mapping, u64 first, u64 last)
{
	if (t->block.mapping != mapping || first > t->block.last || last < t->block.first)
		return false;
	t->block.mapping = 0;
	return true;
}

/* An access to pages that were there. */
static __always_inline void block_used(struct account *a, u64 mapping, u64 first, u64 last,
				       enum ledger_mode mode)
{
	u64 pages = last - first + 1, prefetched = ledger_take(mapping, first, last, mode);

	if (prefetched)
		COUNT(a, C_META_AHEAD_HITS, prefetched);
	if (prefetched < pages)
		COUNT(a, C_META_HITS, pages - prefetched);
}

/* A request for a buffer, which the verifier knows to be one, has ended. `ahead`: it was made to read ahead. */
static __always_inline void block_found(struct buffer_head *bh, bool ahead, enum ledger_mode mode)
{
	u64 mapping, at, size, first, last;
	struct account a;
	struct thread *t;
	bool added;

	if (!ready || !account_open(&a))
		return;
	t = a.row ? thread_of(a.row) : 0;
	if (t && t->block.ahead) {
		ahead = true;
		t->block.ahead = 0;
	}
	if (!bh)
		return;
	size = bh->b_size;
	at = bh->b_blocknr * size;
	first = at >> PAGE_SHIFT;
	last = (at + (size ? size - 1 : 0)) >> PAGE_SHIFT;
	mapping = (u64)folio_mapping_of(bh->b_page);
	added = t && block_take_added(t, mapping, first, last);
	if (ahead) {
		if (added)
			ledger_set(mapping, first, last, mode);
	} else if (added) {
		COUNT(&a, C_META_MISSES, last - first + 1);
	} else {
		block_used(&a, mapping, first, last, mode);
	}
}

/* __breadahead: what the next request for a buffer is made for, where its own arguments do not tell. */
static __always_inline void buffer_read_ahead(void)
{
	struct row *row = own_row(true);
	struct thread *t = row ? thread_of(row) : 0;

	if (t)
		t->block.ahead = 1;
}

#endif
