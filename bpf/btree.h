/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Metadata of btrfs: blocks of its trees, in the mapping of its btree inode.
 *
 * An access is one step to a block: a search looks for the buffer of the next one (find_extent_buffer), and where that
 * is not there or not read yet, makes it and reads it (read_extent_buffer_pages), as do the others that walk a tree. It
 * counts the pages of the block, four as a rule. A block that is made anew is read by nobody and is no access; one
 * that is read ahead waits in the ledger for its first use. The root of a tree is held by its pointer: nothing is
 * looked up.
 */
#ifndef CACHETOP_BTREE_H
#define CACHETOP_BTREE_H

#include "meta.h"

#define EXTENT_BUFFER_UPTODATE 1 /* bit 0 of bflags, on all kernels */
#define WAIT_NONE 0

struct tree_block {
	u64 mapping;
	u64 first;
	u64 last;
	bool uptodate;
};

static __always_inline void look_at_tree_block(struct tree_block *b, struct extent_buffer *eb)
{
	u64 start = BPF_CORE_READ(eb, start);

	b->mapping = (u64)BPF_CORE_READ(eb, fs_info, btree_inode, i_mapping);
	b->first = start >> PAGE_SHIFT;
	b->last = (start + BPF_CORE_READ(eb, len) - 1) >> PAGE_SHIFT;
	b->uptodate = BPF_CORE_READ(eb, bflags) & EXTENT_BUFFER_UPTODATE;
}

/* alloc_extent_buffer begins by looking for the buffer: part of the same step. `start` is 0 when it has ended. */
static __always_inline void tree_block_wanted(u64 start)
{
	struct row *row = own_row(start != 0);
	struct thread *t = row ? thread_of(row) : 0;

	if (t)
		t->block.tree = start;
}

/* find_extent_buffer has found one. Where it is still to be read, its reader counts it. */
static __always_inline void tree_block_found(struct extent_buffer *eb)
{
	struct tree_block b;
	struct account a;
	struct thread *t;

	if (!ready || !eb || !account_open(&a))
		return;
	look_at_tree_block(&b, eb);
	t = a.row ? thread_of(a.row) : 0;
	if (!b.uptodate || (t && t->block.tree >> PAGE_SHIFT == b.first))
		return;
	block_used(&a, b.mapping, b.first, b.last, BITS);
}

/* read_extent_buffer_pages: a step of somebody who waits for the block, or read-ahead. Returns at once if it was read. */
static __always_inline void tree_block_read(struct extent_buffer *eb, bool ahead)
{
	struct tree_block b;
	struct account a;
	struct thread *t;
	bool added;

	if (!ready || !account_open(&a) || !a.row)
		return;
	t = thread_of(a.row);
	if (!t)
		return;
	/* From 6.12 on, those who wait call the function for those who do not. */
	if (ahead && t->block.reading == (u64)eb) {
		t->block.reading = 0;
		return;
	}
	if (!ahead)
		t->block.reading = (u64)eb;
	look_at_tree_block(&b, eb);
	added = block_take_added(t, b.mapping, b.first, b.last) && !b.uptodate;
	if (ahead) {
		if (added)
			ledger_set(b.mapping, b.first, b.last, BITS);
	} else if (added) {
		COUNT(&a, C_META_MISSES, b.last - b.first + 1);
	} else {
		block_used(&a, b.mapping, b.first, b.last, BITS);
	}
}

#endif
