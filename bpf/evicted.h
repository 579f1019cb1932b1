/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which pages left, by whom, and whether they have come back: what is remembered between an eviction and the read that brings
 * the page in again. Part of blame.h.
 */
#ifndef CACHETOP_EVICTED_H
#define CACHETOP_EVICTED_H

#include "alike.h"
#include "bill.h"

/*
 * Pages that stand beside each other leave beside each other: by blocks, of which a folio has one or fills several.
 */
#define BLOCK_SHIFT 5
#define BLOCK_PAGES (1U << BLOCK_SHIFT)
#define EVICTED_WAYS 8
#define EVICTED_NUMBER 0xffffULL

/*
 * Pages of a block that one row took out. A page is in one of three states (it left; it left and has come back; neither), and whoever
 * changes it holds the page's lock or that of the mapping: so what is added to the word is exact, whatever is added for the
 * others meanwhile, as long as the word stays this block's. Kernels before 5.12 have no other atomic instruction.
 */
struct evicted {
	u64 who; /* 48 bits of a hash of file and block, and one more than the number of the row */
	u64 pages; /* a bit for each that left and, 32 higher, for each that has come back */
};

/*
 * Blocks by their hash. A block is here once for each row that took some of it out. A set that is full loses an entry, which is counted;
 * so may one in which two processors make room at a time, which is not. Where a word is given to another block just as a second processor
 * adds to it for the one that it was of (two files in one set, within some ten instructions), some of its pages are taken for others
 * until they have gone and come again.
 */
struct evicted_set {
	struct evicted block[EVICTED_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct evicted_set);
} evicted_sets SEC(".maps");

/* One less than the number of sets, a power of two. Set before load. */
const volatile u32 evicted_mask = 0;

volatile u64 blame_forgotten = 0; /* pages that others took the place of before they came back */
volatile u64 blame_strangers = 0; /* pages that the kernel says were evicted, not known by whom */

/* Some pages of a block: those of [first, first + n), of which it has at most all. */
static __always_inline u32 pages_from(u64 first, u64 n)
{
	return ((1ULL << (n & (2 * BLOCK_PAGES - 1))) - 1) << (first & (BLOCK_PAGES - 1));
}

/* The file is a number or an address: what is added for the block has all its bits in the upper half, too. */
static __always_inline u64 hash_of_block(u64 file, u64 block)
{
	u64 h = file + block * 0x9e3779b97f4a7c15ULL;

	h = (h ^ h >> 32) * 0xff51afd7ed558ccdULL;
	return h ^ h >> 32;
}

static __always_inline struct evicted_set *set_of(u64 hash)
{
	u32 n = hash & evicted_mask;

	return bpf_map_lookup_elem(&evicted_sets, &n);
}

/* One that is empty has no pages, whatever it is taken for. */
static __always_inline bool is_of(const struct evicted *e, u64 hash)
{
	return !((e->who ^ hash) >> 16);
}

/* The first of a block that a row takes out. Global, as are those below: verified once. */
__noinline int block_goes_first(u64 hash, u32 pages, u32 number)
{
	struct evicted_set *set = set_of(hash);
	struct evicted *e;
	u32 i, n = EVICTED_WAYS;

	if (!set)
		return 0;
	/* What nobody waits for: of these, rather what has never been there. */
	for (i = 0; i < EVICTED_WAYS; i++) {
		e = &set->block[i];
		if (!e->who) {
			n = i;
			break;
		}
		if (!(u32)e->pages)
			n = i;
	}
	if (n >= EVICTED_WAYS) {
		n = bpf_get_prandom_u32() & (EVICTED_WAYS - 1);
		__sync_fetch_and_add(&blame_forgotten,
				     __builtin_popcount((u32)set->block[n & (EVICTED_WAYS - 1)].pages));
	}
	e = &set->block[n & (EVICTED_WAYS - 1)];
	e->pages = pages;
	e->who = (hash & ~EVICTED_NUMBER) | (number + 1);
	return 0;
}

/* What its pages become as these leave: an addition, since others may be added to it at the same time. */
static __always_inline void block_goes(struct evicted *e, u32 pages)
{
	u64 had = e->pages;

	__sync_fetch_and_add(&e->pages, (pages & ~had) - ((had >> BLOCK_PAGES & pages) << BLOCK_PAGES));
}

/* Pages of a block leave, and are remembered. `last`: where the entry is noted; null: nowhere. */
static __always_inline void pages_go(struct blame_last *last, u64 file, u64 block, u32 pages, u32 number)
{
	u64 hash = hash_of_block(file, block), who = (hash & ~EVICTED_NUMBER) | (number + 1);
	struct evicted_set *set = set_of(hash);
	u32 i;

	if (!set)
		return;
	/* Mostly it has been here before: what goes goes again, or its neighbour does. */
#pragma unroll
	for (i = 0; i < EVICTED_WAYS; i++) {
		if (set->block[i].who != who)
			continue;
		block_goes(&set->block[i], pages);
		if (last && (last->share || !with_bill)) {
			last->who = who;
			last->place = (hash & evicted_mask) * EVICTED_WAYS + i;
			last->block = block | (last->used_again ? USED_AGAIN : 0);
		}
		return;
	}
	block_goes_first(hash, pages, number);
}

/*
 * Pages of the block, file and evictor that the last one was of, in this tick: what they were found in is still there, which they say
 * themselves. False: they are not.
 */
static __always_inline bool pages_go_alike(struct blame_last *last, struct address_space *mapping, u64 first,
					   u64 n)
{
	u32 of_set = last->place / EVICTED_WAYS, of_share = last->share, of_row = last->evictor;
	u64 block = first >> BLOCK_SHIFT;
	struct blame_share *share;
	struct evicted_set *set;
	struct blame_row *row;
	struct evicted *e;

	if ((void *)last->mapping != (void *)mapping)
		return false;
	if (last->block != block &&
	    (last->block != (block | USED_AGAIN) || mapping->host->i_generation != last->generation))
		return false;
	set = bpf_map_lookup_elem(&evicted_sets, &of_set);
	if (!set)
		return false;
	e = &set->block[last->place & (EVICTED_WAYS - 1)];
	if (e->who != last->who)
		return false;
	if (with_bill) {
		share = bpf_map_lookup_elem(&blame_shares, &of_share);
		if (!share)
			return false;
		__sync_fetch_and_add(&share->out, n);
	} else {
		row = bpf_map_lookup_elem(&blame_rows, &of_row);
		if (!row)
			return false;
		__sync_fetch_and_add(&row->out, n);
	}
	block_goes(e, pages_from(first, n));
	return true;
}

/* A folio of more than one block, which begins and ends with one: 1024 pages, twice what the largest of the cache has. */
__noinline int blocks_go(u64 file, u64 block, u64 blocks, u32 number)
{
	u32 i;

	for (i = 0; i < 32 && i < blocks; i++) {
		pages_go(0, file, block + i, ~0U, number);
		END_OF_LOOP();
	}
	return 0;
}

enum blame_step {
	BLAME_COMES,
	BLAME_COMES_AGAIN, /* brought in by the run that lasts, or by what was asked for */
	BLAME_REFAULTS,
};

/* Whoever took pages out has these to answer for. */
static __always_inline void answers_for(u64 file, u32 number, u32 n, u32 step)
{
	struct blame_row *row = bpf_map_lookup_elem(&blame_rows, &number);

	if (!row)
		return;
	if (step == BLAME_REFAULTS) {
		__sync_fetch_and_add(&row->refaulted, n);
	} else {
		__sync_fetch_and_add(&row->back, n);
		if (step == BLAME_COMES_AGAIN)
			__sync_fetch_and_add(&row->again, n);
	}
	bill_pages(file, number, n, step == BLAME_REFAULTS);
}

/*
 * Pages of a block come, or the kernel finds that it had them. What has come once is not counted again, and is answered for by the
 * last who took it out: of others, or where that is not known, it is as if they had not.
 */
__noinline int block_comes(u64 file, u64 block, u32 pages, u32 step)
{
	u64 hash = hash_of_block(file, block), had, has;
	struct evicted_set *set = set_of(hash);
	u32 i, rows = 0, out = 0, left = pages, back, its;
	struct evicted *e;

	if (!set)
		return 0;
#pragma unroll
	for (i = 0; i < EVICTED_WAYS; i++) {
		if (is_of(&set->block[i], hash)) {
			rows |= 1 << i;
			out |= set->block[i].pages;
		}
	}
	for (i = 0; rows && i < EVICTED_WAYS; i++) {
		START_OF_LOOP();
		if (!(rows >> i & 1))
			continue;
		e = &set->block[i];
		had = e->pages;
		back = had >> BLOCK_PAGES;
		if (step == BLAME_REFAULTS) {
			its = ((u32)had | (back & ~out)) & left;
		} else {
			its = (u32)had & left;
			has = (u64)((back & ~pages) | its) << BLOCK_PAGES | ((u32)had & ~pages);
			if (has != had)
				__sync_fetch_and_add(&e->pages, has - had);
		}
		left &= ~its;
		if (its) {
			answers_for(file, (e->who & EVICTED_NUMBER) - 1, __builtin_popcount(its), step);
			END_OF_LOOP();
		}
	}
	if (step == BLAME_REFAULTS && left)
		__sync_fetch_and_add(&blame_strangers, __builtin_popcount(left));
	return 0;
}

/* The same of a folio. */
__noinline int pages_come(u64 file, u64 first, u64 n, u32 step)
{
	u32 i;

	if (n <= BLOCK_PAGES)
		return block_comes(file, first >> BLOCK_SHIFT, pages_from(first, n), step);
	for (i = 0; i < 32 && i < n >> BLOCK_SHIFT; i++) {
		block_comes(file, (first >> BLOCK_SHIFT) + i, ~0U, step);
		END_OF_LOOP();
	}
	return 0;
}

/* A page that is waited for: one more than the number of the row that had taken it out; 0 where this is not known. */
__noinline u32 whose_fault(u64 file, u64 index)
{
	u64 hash = hash_of_block(file, index >> BLOCK_SHIFT);
	u64 bit = 1ULL << BLOCK_PAGES << (index & (BLOCK_PAGES - 1));
	struct evicted_set *set = set_of(hash);
	u32 i;

	for (i = 0; set && i < EVICTED_WAYS; i++) {
		if (is_of(&set->block[i], hash) && set->block[i].pages & bit)
			return set->block[i].who & EVICTED_NUMBER;
	}
	return 0;
}

#endif
