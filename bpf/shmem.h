/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * tmpfs adds no page when a hole is read and fires no event when it brings a page back from swap, so the pages that
 * are not there are counted when the call begins, by walking the mapping's xarray. Only files with holes or pages in
 * swap pay for it.
 */
#ifndef CACHETOP_SHMEM_H
#define CACHETOP_SHMEM_H

#include "thread.h"

#define XA_BITS 6
#define XA_SLOTS (1 << XA_BITS)
#define XA_LEVELS 8
#define WALK_STEP 64
#define MAX_WALK 4096 /* pages of one read that are looked at; a longer read of a file with holes is lost */

struct xa_node {
	unsigned char shift;
	void *slots[XA_SLOTS];
} __attribute__((preserve_access_index));

struct xarray {
	void *xa_head;
} __attribute__((preserve_access_index));

struct address_space___pages {
	struct xarray i_pages;
} __attribute__((preserve_access_index));

/* What stands in a mapping's xarray for a page: 0, a folio, or odd: it was evicted, or is in swap. Global: verified once. */
__noinline u64 entry_of_page(u64 mapping, u64 index)
{
	u64 entry = (u64)BPF_CORE_READ((struct address_space___pages *)mapping, i_pages.xa_head);
	u64 node, shift;
	bool below = false; /* a node */
	u32 i;

	for (i = 0; i < XA_LEVELS; i++) {
		/* Entries that end in binary 10 point to nodes, but for small numbers, which have other meanings. */
		if ((entry & 3) != 2 || entry <= 4096)
			break;
		below = true;
		node = entry - 2;
		shift = BPF_CORE_READ((struct xa_node *)node, shift);
		/* A single page at index 0 has no node above it; nothing lies beyond what the root spans. */
		if (i == 0 && shift < 58 && index >> (shift + XA_BITS))
			return 0;
		bpf_probe_read_kernel(
			&entry, sizeof(entry),
			(void *)&((struct xa_node *)node)->slots[(index >> shift) & (XA_SLOTS - 1)]);
		if ((entry & 3) == 2 && entry <= 4096 && entry >> 2 < XA_SLOTS) {
			/* A sibling: the large folio stands in the slot that it names. */
			bpf_probe_read_kernel(&entry, sizeof(entry),
					      (void *)&((struct xa_node *)node)->slots[entry >> 2]);
			break;
		}
		if (!shift)
			break;
	}
	return below || !index ? entry : 0;
}

/* The folio that has a page, by its address; 0: it is not in memory. */
static __always_inline u64 folio_of_page(u64 mapping, u64 index)
{
	u64 entry = entry_of_page(mapping, index);

	return entry & 3 ? 0 : entry;
}

/* 1 if the page is in memory. Global, so that no path begins here in each round of who asks. */
__noinline u64 is_resident(u64 mapping, u64 index)
{
	return folio_of_page(mapping, index) != 0;
}

/* How many of the first WALK_STEP pages of [first, last] are not in memory. Global: verified once, not per step. */
__noinline u64 absent_in_step(u64 mapping, u64 first, u64 last)
{
	u64 absent = 0;
	u32 i;

	for (i = 0; i < WALK_STEP; i++) {
		if (first + i > last)
			break;
		absent += 1 - is_resident(mapping, first + i);
	}
	return absent;
}

/* How many pages of [first, last] are not in memory. */
__noinline u64 absent_pages(u64 mapping, u64 first, u64 last)
{
	u64 absent = 0;
	u32 i;

	for (i = 0; i < MAX_WALK / WALK_STEP; i++) {
		if (first > last)
			return absent;
		absent += absent_in_step(mapping, first, last);
		first += WALK_STEP;
	}
	if (first <= last)
		count_one(C_LOST_DEPTH);
	return absent;
}

#endif
