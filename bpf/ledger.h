/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The ledger of prefetched pages that nobody has used yet, keyed by the address of the mapping. A mapping is freed
 * only after its last page was deleted, and the delete event forgets the page, so a reused address never meets an
 * old entry.
 *
 * A page is taken exactly once, also by two readers at the same instant. From 5.12 one bit per page in words of 64
 * pages, taken by an atomic and with fetch. Older kernels refuse programs that contain the instruction: there each
 * page is an entry, and taking is deleting, which succeeds once.
 *
 * Words have numbers, so that who sets one bit after the other searches once a word. The monitor takes out words that are
 * empty, and gives their numbers back a while later (src/kernel/sweep.rs).
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
#define LEDGER_WORDS 65536

struct ledger_key {
	u64 mapping;
	u64 chunk;
};

/* Which word a chunk has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LEDGER_WORDS);
	__type(key, struct ledger_key);
	__type(value, u32);
} ledger SEC(".maps");

/*
 * Says itself which chunk it is of: neither a number that somebody remembers proves it, nor one that the table had a moment ago. No
 * mapping: it is nobody's.
 */
struct ledger_word {
	struct ledger_key key;
	u64 bits;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LEDGER_WORDS);
	__type(key, u32);
	__type(value, struct ledger_word);
} ledger_words SEC(".maps");

/* Numbers that have come back; and how many have been given out for the first time. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, LEDGER_WORDS);
	__type(value, u32);
} ledger_free SEC(".maps");

u32 ledger_words_made = 0;

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

/* Of the mapping's address the lower half will do. */
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
	u32 number; /* of the last word that there was */
	bool set;
};

static __always_inline struct ledger_word *ledger_word_at(u32 n)
{
	return bpf_map_lookup_elem(&ledger_words, &n);
}

/* The number of a word that nobody has. False: there is none. */
static __always_inline bool new_word(u32 *n)
{
	if (*(volatile u32 *)&ledger_words_made < LEDGER_WORDS) {
		*n = __sync_fetch_and_add(&ledger_words_made, 1);
		if (*n < LEDGER_WORDS)
			return true;
	}
	return !pop_number(&ledger_free, n);
}

/* Whether the word is that of the chunk. The mapping is written last, and read first. */
static __always_inline bool is_word_of(struct ledger_word *word, u64 mapping, u64 chunk)
{
	return *(volatile u64 *)&word->key.mapping == mapping && word->key.chunk == chunk;
}

/* Gives a chunk a word; where another processor was faster, that one's. Null: there is no room. */
static __always_inline struct ledger_word *make_word(struct ledger_key *key, u32 *n)
{
	struct ledger_word *word;
	u64 late;
	u32 *others;

	if (!new_word(n))
		return 0;
	word = ledger_word_at(*n);
	if (!word)
		return 0;
	/* Set by somebody who was about to when its last owner's was taken out. */
	late = __sync_fetch_and_and(&word->bits, 0);
	if (late)
		count_nobodys(C_LOST_LEDGER, popcount(late));
	word->key.chunk = key->chunk;
	barrier();
	word->key.mapping = key->mapping;
	if (!bpf_map_update_elem(&ledger, key, n, BPF_NOEXIST)) {
		count_one(C_LEDGER_CHUNKS);
		return word;
	}
	word->key.mapping = 0;
	push_number(&ledger_free, n);
	others = bpf_map_lookup_elem(&ledger, key);
	if (!others)
		return 0;
	*n = *others;
	return ledger_word_at(*n);
}

static __always_inline void set_bits(struct walk *w, u64 mask)
{
	u32 n, *known = bpf_map_lookup_elem(&ledger, &w->key);
	struct ledger_word *word;

	if (known) {
		n = *known;
		word = ledger_word_at(n);
	} else {
		word = make_word(&w->key, &n);
	}
	if (!word || !is_word_of(word, w->key.mapping, w->key.chunk)) {
		count_one(C_LOST_LEDGER);
		return;
	}
	w->number = n;
	w->pages += popcount(mask & ~__sync_fetch_and_or(&word->bits, mask));
}

static __always_inline void take_bits(struct walk *w, u64 mask)
{
	u32 *known = bpf_map_lookup_elem(&ledger, &w->key);
	struct ledger_word *word = known ? ledger_word_at(*known) : 0;

	if (!word || !is_word_of(word, w->key.mapping, w->key.chunk))
		return;
	w->number = *known;
	if (word->bits & mask)
		w->pages += popcount(mask & __sync_fetch_and_and(&word->bits, ~mask));
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

/* The word of this number, if it is that of all these pages; else null. Of BITS only. */
static __always_inline struct ledger_word *word_again(u32 number, u64 mapping, u64 first, u64 last)
{
	struct ledger_word *word = ledger_word_at(number);

	if (!word || !is_word_of(word, mapping, first >> CHUNK_SHIFT) ||
	    first >> CHUNK_SHIFT != last >> CHUNK_SHIFT)
		return 0;
	return word;
}

/* The bits of pages that lie in one chunk. */
static __always_inline u64 bits_of(u64 first, u64 last)
{
	return (~0ULL >> ((CHUNK_PAGES - 1 - (last - first)) & (CHUNK_PAGES - 1)))
	       << (first & (CHUNK_PAGES - 1));
}

/* Sets them in the word of this number, if it is theirs: false where it is not. */
static __always_inline bool set_in_word(u32 number, u64 mapping, u64 first, u64 last)
{
	struct ledger_word *word = word_again(number, mapping, first, last);
	u64 *filter = filter_slot(mapping), n = last - first + 1, mask = bits_of(first, last), old;

	if (!word)
		return false;
	/* In this order: see below. */
	__sync_fetch_and_add(filter, n);
	old = __sync_fetch_and_or(&word->bits, mask) & mask;
	if (unlikely(old))
		__sync_fetch_and_add(filter, -(u64)popcount(old));
	return true;
}

/* Remembers [first, last] as prefetched and unused; the number of the word in which the last ones are. */
static __always_inline u32 ledger_set_body(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	struct walk w = {.key.mapping = mapping, .first = first, .last = last, .set = true};
	u64 *filter = filter_slot(mapping);

	if (!mapping)
		return 0; /* the page has gone meanwhile */
	/* Raised before the first bit is set, so that nobody passes by a bit; lowered by what was not new. */
	__sync_fetch_and_add(filter, last - first + 1);
	walk(&w, mode);
	if (w.pages != last - first + 1)
		__sync_fetch_and_add(filter, w.pages - (last - first + 1));
	return w.number;
}

/*
 * Forgets [first, last] and returns how many of its pages were prefetched and unused; above these 32 bits, the number of the
 * last word that there was.
 */
static __always_inline u64 ledger_take_body(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	struct walk w = {.key.mapping = mapping, .first = first, .last = last};
	u64 *filter = filter_slot(mapping);

	walk(&w, mode);
	if (w.pages)
		__sync_fetch_and_add(filter, -w.pages);
	return (u64)w.number << 32 | w.pages;
}

/*
 * Each mode has functions of its own: a program is refused for an instruction even where it cannot be reached.
 * They are global, so that the verifier looks at each once and not at every call.
 */
__noinline u32 ledger_set_bits(u64 mapping, u64 first, u64 last)
{
	return ledger_set_body(mapping, first, last, BITS);
}

__noinline u32 ledger_set_pages(u64 mapping, u64 first, u64 last)
{
	return ledger_set_body(mapping, first, last, PAGES);
}

__noinline u64 ledger_take_bits(u64 mapping, u64 first, u64 last)
{
	return ledger_take_body(mapping, first, last, BITS);
}

__noinline u64 ledger_take_pages(u64 mapping, u64 first, u64 last)
{
	return ledger_take_body(mapping, first, last, PAGES);
}

static __always_inline u32 ledger_set(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	if (first > last)
		return 0;
	return mode == BITS ? ledger_set_bits(mapping, first, last) : ledger_set_pages(mapping, first, last);
}

static __always_inline u64 ledger_take(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	u64 *filter = filter_slot(mapping);

	if (!*(volatile u64 *)filter)
		return 0;
	if (mode == BITS)
		return (u32)ledger_take_bits(mapping, first, last);
	return (u32)ledger_take_pages(mapping, first, last);
}

/*
 * All of [first, last], or none. False also where they are not in the word that the reader has looked in last. For kernels that
 * have atomics only.
 */
static __always_inline bool ledger_take_all(struct row *row, u64 mapping, u64 first, u64 last)
{
	struct ledger_word *word = word_again(row->ledger_word, mapping, first, last);
	u64 mask = bits_of(first, last), bits;

	if (!word)
		return false;
	bits = *(volatile u64 *)&word->bits;
	if ((bits & mask) != mask || __sync_val_compare_and_swap(&word->bits, bits, bits & ~mask) != bits)
		return false;
	__sync_fetch_and_add(filter_slot(mapping), first - last - 1);
	return true;
}

/*
 * The same for a reader, who mostly goes on in the word that it has looked in last. If nothing is found there it is searched for: the
 * monitor may be about to take out the word, which is empty then, and the chunk may have another one by now.
 */
static __always_inline u64 ledger_take_next(struct row *row, u64 mapping, u64 first, u64 last,
					    enum ledger_mode mode)
{
	u64 *filter = filter_slot(mapping), mask = bits_of(first, last), taken;
	struct ledger_word *word;

	if (!*(volatile u64 *)filter)
		return 0;
	if (mode != BITS)
		return ledger_take(mapping, first, last, mode);
	word = word_again(row->ledger_word, mapping, first, last);
	if (!word || !(word->bits & mask)) {
		taken = ledger_take_bits(mapping, first, last);
		row->ledger_word = taken >> 32;
		return (u32)taken;
	}
	taken = __sync_fetch_and_and(&word->bits, ~mask) & mask;
	taken = taken & (taken - 1) ? popcount(taken) : !!taken; /* of one page there is little to count */
	__sync_fetch_and_add(filter, -taken);
	return taken;
}

/* A write has used pages that were read ahead. Where folios have several pages, they do not become dirty one by one. */
static __noinline int used_by_write(u64 mapping, u64 first, u64 pages)
{
	ledger_take(mapping, first, first + pages - 1, BITS);
	return 0;
}

#endif
