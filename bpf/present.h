/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whether the pages of a read are there already, and nobody's first use waits for them, for reads without a hook at their return
 * (plain.h). Of a file that is cached in part, few pages are looked at in the mapping's xarray, where any address can be
 * read by plain loads: of one that is not mapped they load zero. Nothing that is seen here needs to stay as it is: a page that goes
 * before it is read has to be added, for which the request gets its frame. A node that is freed meanwhile stays one as long as a
 * program runs (RCU).
 *
 * The order is what matters. A page that is read ahead stands in the xarray before it is in the ledger, but it is up to date only
 * after both. So pages have to be up to date, and the ledger is asked last: else a page could count as used while its mark comes
 * and stays. A page that is not is waited for, in a read that is counted at its return.
 */
#ifndef CACHETOP_PRESENT_H
#define CACHETOP_PRESENT_H

#include "flight.h"
#include "shmem.h"

/* Pages of a read that are looked at one by one. */
#define FEW 4

enum in_ledger { NEITHER, NONE_IN_LEDGER, ALL_TAKEN };

/* Whether an entry is a node; small numbers are siblings, or what a look-up is to be tried again for. */
static __always_inline bool is_node(u64 entry)
{
	return entry > 4096 && (entry & 3) == 2;
}

static __always_inline u64 slot_at(u64 slots, u64 n)
{
	return word_at((void *)(slots + (n & (XA_SLOTS - 1)) * 8));
}

/* What stands in the slot for a page; where it is a sibling, the large folio that stands in the slot that it names. */
static __always_inline u64 folio_in(u64 slots, u64 entry)
{
	return (entry & 3) == 2 && entry >> 2 < XA_SLOTS ? slot_at(slots, entry >> 2) : entry;
}

/* Odd is what was evicted, or in swap; none is zero, which has no flags. */
static __always_inline bool is_up_to_date(u64 entry)
{
	if (entry & 3)
		return false;
	return word_at((void *)entry) >> bpf_core_enum_value(enum pageflags___uptodate, PG_uptodate___uptodate) &
	       1;
}

/* Whether all of few pages of one chunk are there and up to date, by one walk to the node that they share. */
static __noinline bool few_present(u64 mapping, u64 first, u64 last)
{
	u64 entry = word_at(&((struct address_space___pages *)mapping)->i_pages.xa_head), slots = 0, shift = 0;
	u64 next, n;

	if (first >> CHUNK_SHIFT != last >> CHUNK_SHIFT)
		return false;
	if (is_node(entry)) {
		shift = bpf_core_cast((void *)(entry - 2), struct xa_node)->shift & 63;
		if (first >> shift >= XA_SLOTS)
			return false; /* beyond what the root spans */
		for (;;) {
			slots = entry - 2 + bpf_core_field_offset(struct xa_node, slots);
			entry = slot_at(slots, first >> shift);
			if (shift < XA_BITS || !is_node(entry))
				break;
			shift -= XA_BITS;
		}
		entry = folio_in(slots, entry);
	} else if (last) {
		return false; /* only a single page at index 0 has no node above it */
	}
	if (!is_up_to_date(entry))
		return false;
	if (shift)
		return true; /* one folio, of a chunk or more */
	if (last - first >= FEW)
		return false;
	for (n = 1; n < FEW; n++) {
		if (first + n > last)
			return true;
		next = folio_in(slots, slot_at(slots, first + n));
		if (next != entry && !is_up_to_date(next))
			return false;
		entry = next;
	}
	return first + n > last;
}

/*
 * How pages that are there stand in the ledger, by a search for their word, which the row remembers. If all do, they are taken.
 * NEITHER: some do, or it takes long to say.
 */
static __noinline enum in_ledger find_in_ledger(struct row *row, u64 mapping, u64 first, u64 last)
{
	struct ledger_key key = {.mapping = mapping, .chunk = first >> CHUNK_SHIFT};
	struct ledger_word *word;
	u32 *known;

	if (key.chunk != last >> CHUNK_SHIFT)
		return NEITHER;
	known = bpf_map_lookup_elem(&ledger, &key);
	if (!known)
		return NONE_IN_LEDGER;
	row->ledger_word = *known;
	word = word_again(*known, mapping, first, last);
	if (!word)
		return NEITHER; /* it is being taken out */
	if (!(*(volatile u64 *)&word->bits & bits_of(first, last)))
		return NONE_IN_LEDGER;
	return ledger_take_all(row, mapping, first, last) ? ALL_TAKEN : NEITHER;
}

/* The same of pages that may be missing or in the ledger. NEITHER, too, where it is not known that they are there. */
static __always_inline enum in_ledger look_at_pages(struct row *row, u64 mapping, u64 first, u64 last,
						    bool whole)
{
	bool raised = *(volatile u64 *)filter_slot(mapping);

	if (raised && ledger_take_all(row, mapping, first, last))
		return ALL_TAKEN;
	if (!whole) {
		if (!few_present(mapping, first, last))
			return NEITHER;
		barrier();
		raised = *(volatile u64 *)filter_slot(mapping);
	}
	return raised ? find_in_ledger(row, mapping, first, last) : NONE_IN_LEDGER;
}

#endif
