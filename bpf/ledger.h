/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The ledger of prefetched pages that nobody has used yet, keyed by the address of the mapping. A mapping is freed
 * only after its last page was deleted, and the delete event forgets the page, so a reused address never meets an
 * old entry.
 *
 * A page is taken exactly once, also by two readers at the same instant. From 5.12 one bit per page in words of 64
 * pages, taken by an atomic and with fetch. Older kernels refuse programs that contain the instruction: there each
 * page is an entry, and taking is deleting, which succeeds once.
 */
#ifndef CACHETOP_LEDGER_H
#define CACHETOP_LEDGER_H

#include "account.h"

enum ledger_mode { BITS, PAGES };

#define CHUNK_SHIFT 6
#define CHUNK_PAGES (1U << CHUNK_SHIFT)
/* Before bpf_loop (5.17), the longest range in one go is about 8192 pages (32 MiB); more is lost. */
#define MAX_CHUNKS 130
#define PIECE 64 /* pages, where each page is an entry */
#define MAX_PIECES 130
#define FILTER_SLOTS 4096

struct ledger_key {
	u64 mapping;
	u64 chunk;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct ledger_key);
	__type(value, u64);
} ledger SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__type(key, struct ledger_key); /* `chunk` is the page's index */
	__type(value, u8);
} ledger_pages SEC(".maps");

/*
 * How many bits are set for the mappings that share a slot. Zero says that no look-up can find anything, which
 * is what a warm file's readers see.
 */
u64 ledger_filter[FILTER_SLOTS];

static __always_inline u64 *filter_slot(u64 mapping)
{
	/* Inodes lie about 1 KiB apart. */
	return &ledger_filter[mapping >> 10 & (FILTER_SLOTS - 1)];
}

static __always_inline u32 popcount(u64 x)
{
	x -= (x >> 1) & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (x * 0x0101010101010101ULL) >> 56;
}

/* The bits of [first, last] that lie in a chunk. */
static __always_inline u64 chunk_mask(u64 chunk, u64 first, u64 last)
{
	u64 mask = ~0ULL;

	if (first >> CHUNK_SHIFT == chunk)
		mask &= ~0ULL << (first & (CHUNK_PAGES - 1));
	if (last >> CHUNK_SHIFT == chunk)
		mask &= ~0ULL >> (CHUNK_PAGES - 1 - (last & (CHUNK_PAGES - 1)));
	return mask;
}

/* One walk over [first, last]. */
struct walk {
	struct ledger_key key;
	u64 first;
	u64 last;
	u64 pages; /* set or taken */
	bool set;
};

static __always_inline void set_bits(struct walk *w, u64 mask)
{
	u64 none = 0, *bits = bpf_map_lookup_elem(&ledger, &w->key);

	if (!bits) {
		if (!bpf_map_update_elem(&ledger, &w->key, &none, BPF_NOEXIST))
			count_one(C_LEDGER_CHUNKS);
		bits = bpf_map_lookup_elem(&ledger, &w->key);
		if (!bits) {
			count_one(C_LOST_LEDGER);
			return;
		}
	}
	w->pages += popcount(mask & ~__sync_fetch_and_or(bits, mask));
}

static __always_inline void take_bits(struct walk *w, u64 mask)
{
	u64 *bits = bpf_map_lookup_elem(&ledger, &w->key);

	if (bits && *bits & mask)
		w->pages += popcount(mask & __sync_fetch_and_and(bits, ~mask));
}

static __always_inline bool next_chunk(struct walk *w)
{
	u64 mask;

	if (w->key.chunk > w->last >> CHUNK_SHIFT)
		return false;
	mask = chunk_mask(w->key.chunk, w->first, w->last);
	if (w->set)
		set_bits(w, mask);
	else
		take_bits(w, mask);
	w->key.chunk++;
	return true;
}

static long next_chunk_callback(u32 i, struct walk *w)
{
	return !next_chunk(w);
}

static __always_inline bool next_page(struct walk *w)
{
	u8 one = 1;

	if (w->key.chunk > w->last)
		return false;
	if (!w->set)
		w->pages += !bpf_map_delete_elem(&ledger_pages, &w->key);
	else if (!bpf_map_update_elem(&ledger_pages, &w->key, &one, BPF_NOEXIST))
		w->pages++;
	else if (!bpf_map_lookup_elem(&ledger_pages, &w->key))
		count_one(C_LOST_LEDGER);
	w->key.chunk++;
	return true;
}

/* A short stretch, page by page. Global, so that the verifier does not multiply it by the loop around it. */
__noinline u64 walk_piece(u64 mapping, u64 first, u64 last, u64 set)
{
	struct walk w = {.key.mapping = mapping, .key.chunk = first, .last = last, .set = set};
	u32 i;

	for (i = 0; i < PIECE; i++) {
		if (!next_page(&w))
			break;
	}
	return w.pages;
}

static __always_inline void walk(struct walk *w, enum ledger_mode mode)
{
	u32 i;

	if (mode == PAGES) {
		for (i = 0; i < MAX_PIECES; i++) {
			if (w->first > w->last)
				return;
			w->pages += walk_piece(w->key.mapping, w->first, w->last, w->set);
			w->first += PIECE;
		}
		if (w->first <= w->last)
			count_one(C_LOST_LEDGER);
		return;
	}
	w->key.chunk = w->first >> CHUNK_SHIFT;
	/* Most stretches lie in one chunk. */
	if (w->key.chunk == w->last >> CHUNK_SHIFT) {
		next_chunk(w);
		return;
	}
	/* bpf_loop is verified once; a loop of ours is verified as often as it may run. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(1 << 20, next_chunk_callback, w, 0);
		return;
	}
	for (i = 0; i < MAX_CHUNKS; i++) {
		if (!next_chunk(w))
			return;
	}
	if (w->key.chunk <= w->last >> CHUNK_SHIFT)
		count_one(C_LOST_LEDGER);
}

/* One page, most of which come one by one: false where its chunk is new. */
static __always_inline bool set_bit(u64 mapping, u64 index, u64 *filter)
{
	struct ledger_key key = {.mapping = mapping, .chunk = index >> CHUNK_SHIFT};
	u64 bit = 1ULL << (index & (CHUNK_PAGES - 1)), *bits = bpf_map_lookup_elem(&ledger, &key);

	if (!bits)
		return false;
	/* In this order: see below. */
	__sync_fetch_and_add(filter, 1);
	if (__sync_fetch_and_or(bits, bit) & bit)
		__sync_fetch_and_add(filter, -1);
	return true;
}

/* Remembers [first, last] as prefetched and unused. */
static __always_inline void ledger_set_body(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	struct walk w = {.key.mapping = mapping, .first = first, .last = last, .set = true};
	u64 *filter = filter_slot(mapping);

	if (mode == BITS && first == last && set_bit(mapping, first, filter))
		return;
	/* Raised before the first bit is set, so that nobody passes by a bit; lowered by what was not new. */
	__sync_fetch_and_add(filter, last - first + 1);
	walk(&w, mode);
	if (w.pages != last - first + 1)
		__sync_fetch_and_add(filter, w.pages - (last - first + 1));
}

/* Forgets [first, last] and returns how many of its pages were prefetched and unused. */
static __always_inline u64 ledger_take_body(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	struct walk w = {.key.mapping = mapping, .first = first, .last = last};
	u64 *filter = filter_slot(mapping);

	walk(&w, mode);
	if (w.pages)
		__sync_fetch_and_add(filter, -w.pages);
	return w.pages;
}

/*
 * Each mode has functions of its own: a program is refused for an instruction even where it cannot be reached.
 * They are global, so that the verifier looks at each once and not at every call.
 */
__noinline int ledger_set_bits(u64 mapping, u64 first, u64 last)
{
	ledger_set_body(mapping, first, last, BITS);
	return 0;
}

__noinline int ledger_set_pages(u64 mapping, u64 first, u64 last)
{
	ledger_set_body(mapping, first, last, PAGES);
	return 0;
}

__noinline u64 ledger_take_bits(u64 mapping, u64 first, u64 last)
{
	return ledger_take_body(mapping, first, last, BITS);
}

__noinline u64 ledger_take_pages(u64 mapping, u64 first, u64 last)
{
	return ledger_take_body(mapping, first, last, PAGES);
}

static __always_inline void ledger_set(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	if (first > last)
		return;
	if (mode == BITS)
		ledger_set_bits(mapping, first, last);
	else
		ledger_set_pages(mapping, first, last);
}

static __always_inline u64 ledger_take(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	u64 *filter = filter_slot(mapping);

	if (!*(volatile u64 *)filter)
		return 0;
	if (mode == BITS)
		return ledger_take_bits(mapping, first, last);
	return ledger_take_pages(mapping, first, last);
}

#endif
