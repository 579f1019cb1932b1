/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which pages are used, page by page and in order, for the simulation of other sizes of the cache (`--what-if`): those
 * alone whose number lies below a threshold, so that a page is always chosen or never, and its neighbours with it: what is
 * read ahead depends on them. Where nobody asks, none of this is there: `with_touches` is a constant, and the kernel drops
 * what cannot be reached.
 *
 * The same functions look at all pages of a request for the sketches of the working set (sketch.h), instead.
 */
#ifndef CACHETOP_TOUCH_H
#define CACHETOP_TOUCH_H

#include "sketch.h"

#define BPF_RB_NO_WAKEUP 1

/* Set before load; also whether either this or sketches are asked for, and whether either this or blame is: one test of both. */
const volatile bool with_touches = false;
const volatile bool with_uses = false;
const volatile bool with_gone = false;

/* Stretches of pages are chosen whose number, of 32 bits, is below. 0: none. */
volatile u64 touch_below = 0;

/* Where a command is followed, only what this run of it does is sent. */
volatile u32 touches_of_run = 0;

volatile u64 touches_dropped = 0; /* there was no room in the ring */
volatile u64 touches_beyond = 0; /* pages of requests too long to be looked at as a whole */

/* What was done, and how it was found: the same numbers in src/kernel/touches.rs. */
enum touch {
	TOUCH_READ,
	TOUCH_FAULT,
	TOUCH_WRITE,
	TOUCH_GONE, /* truncated, dropped or invalidated: not by reclaim */
	TOUCH_AHEAD, /* brought in by a read, before anybody asked for it: no use of it */
	TOUCH_AROUND, /* the same by a fault */
	TOUCH_KIND = 0xff,
	TOUCH_HIT = 0x100, /* all pages of the request were there */
	TOUCH_MISSED = 0x200, /* none was, or they were there by read-ahead alone */
	TOUCH_PART = 0x400, /* of a page: part only */
	TOUCH_REST_SHIFT = 16, /* pages of the request that come after this one */
	TOUCH_WINDOW_SHIFT = 24, /* of a read: what its device reads ahead at once at most, in eights of pages */
	TOUCH_MOST = 0xff, /* of both */
};

struct backing_dev_info___touch {
	unsigned long ra_pages;
} __attribute__((preserve_access_index));
struct super_block___touch {
	struct backing_dev_info___touch *s_bdi;
} __attribute__((preserve_access_index));

/* Pages that are chosen together, as a power of two: what is read ahead at once by default. */
#define STRETCH_SHIFT 5

struct touched {
	u64 page; /* hash of the mapping, and the index below it */
	u32 tid;
	u32 how;
};

/* Sized before load where it is needed. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} touches SEC(".maps");

static __always_inline u64 hash_of_page(u64 mapping, u64 index)
{
	u64 h = (mapping >> 3) * 0x9e3779b97f4a7c15ULL + index;

	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

static __always_inline u64 number_of_page(u64 mapping, u64 index)
{
	return (mapping >> 3) * 0x9e3779b97f4a7c15ULL >> 32 << 32 | (u32)index;
}

/*
 * The same in src/whatif/pages.rs. By the golden ratio: of each file as large a part as of all, and all over it. Which
 * ones, and where a file begins with that, is chance.
 */
static __always_inline bool is_chosen(u64 page)
{
	return (u32)((page >> 32) + ((u32)page >> STRETCH_SHIFT) * 0x9e3779b9U) < touch_below;
}

static __always_inline u64 at_most(u64 n)
{
	return n < TOUCH_MOST ? n : TOUCH_MOST;
}

/* What the device of a file reads ahead at once. */
static __always_inline u64 window_of(u64 mapping)
{
	struct super_block___touch *sb = (void *)BPF_CORE_READ((struct address_space *)mapping, host, i_sb);

	return at_most((BPF_CORE_READ(sb, s_bdi, ra_pages) + 7) / 8);
}

/*
 * Every page of a request is looked at, by three functions of one another's steps: 128 MiB. Global, so that the verifier
 * looks at each loop once, and not at every call of it. Steps end where stretches do, and the rest of a request is its rest.
 */
#define TOUCH_STEPS 32
#define STRETCH (1ULL << STRETCH_SHIFT)
#define STRETCHES (TOUCH_STEPS * STRETCH)

static __always_inline u64 next_after(u64 page, u64 size)
{
	return (page | (size - 1)) + 1;
}

static __always_inline void sketch_few(u64 mapping, u64 first, u64 end, u32 number)
{
	u32 zero = 0, now = sketch_now;
	u8 *all, *own = 0;

	all = bpf_map_lookup_elem(&sketch_all, &zero);
	if (sketch_by != SKETCH_NOBODY)
		own = bpf_map_lookup_elem(&sketches, &number);
	if (!all || !now)
		return;
	for (u32 i = 0; i < STRETCH && first < end; i++, first++)
		sketch_page(all, own, hash_of_page(mapping, first), now);
}

/* The rest of a request that is longer than can be told is told anew in each stretch. */
static __always_inline void send_few(u64 mapping, u64 first, u64 end, u64 last, u64 who)
{
	struct touched t = {.page = number_of_page(mapping, first), .tid = who};

	if (!is_chosen(t.page))
		return;
	t.how = who >> 32 | at_most(last - first) << TOUCH_REST_SHIFT;
	if ((t.how & TOUCH_KIND) == TOUCH_READ)
		t.how |= window_of(mapping) << TOUCH_WINDOW_SHIFT;
	for (u32 i = 0; i < STRETCH && first < end; i++, first++) {
		if (bpf_ringbuf_output(&touches, &t, sizeof(t), BPF_RB_NO_WAKEUP))
			__sync_fetch_and_add(&touches_dropped, 1);
		t.page++;
		t.how -= 1 << TOUCH_REST_SHIFT;
	}
}

/* The pages that are in the stretch of the first. */
__noinline int touch_few(u64 mapping, u64 first, u64 last, u64 who)
{
	u64 end = next_after(first, STRETCH);

	if (end > last)
		end = last + 1;
	if (with_sketches)
		sketch_few(mapping, first, end, who);
	else if (with_touches)
		send_few(mapping, first, end, last, who);
	return 0;
}

__noinline int touch_more(u64 mapping, u64 first, u64 last, u64 who)
{
	u64 end = next_after(first, STRETCHES);

	if (!with_touches && !with_sketches)
		return 0;
	for (u32 i = 0; i < TOUCH_STEPS && first <= last && first < end; i++) {
		touch_few(mapping, first, last, who);
		first = next_after(first, STRETCH);
	}
	return 0;
}

__noinline int touch_many(u64 mapping, u64 first, u64 last, u64 who)
{
	if (!with_touches && !with_sketches)
		return 0;
	if (with_sketches) {
		who = sketch_of(who, mapping);
		if (first == last) {
			touch_few(mapping, first, last, who);
			return 0;
		}
	}
	for (u32 i = 0; i < TOUCH_STEPS && first <= last; i++) {
		touch_more(mapping, first, last, who);
		first = next_after(first, STRETCHES);
	}
	if (first <= last)
		__sync_fetch_and_add(&touches_beyond, last - first + 1);
	return 0;
}

/* Pages [first, last] are used by the thread of this row. */
static __always_inline void touch(struct row *row, u64 mapping, u64 first, u64 last, u32 how)
{
	bool only_simulated = how >= TOUCH_GONE && how <= TOUCH_AROUND;
	u64 who;

	if (!with_uses || (!with_touches && only_simulated) || first > last)
		return;
	if (with_sketches && only_simulated)
		return;
	if (only_some && how != TOUCH_GONE && !(row && row->wanted))
		return;
	if (with_follow && how != TOUCH_GONE && !(row && row->run && row->run == touches_of_run))
		return;
	if (with_sketches)
		who = row ? (u64)row->number + 1 : 0;
	else
		who = (u64)how << 32 | (row ? row->tid : 0);
	if (with_sketches || first != last) {
		touch_many(mapping, first, last, who);
		return;
	}
	if (is_chosen(number_of_page(mapping, first)))
		touch_few(mapping, first, last, who);
}

/* Whether some of pages [first, last] may have to be sent, where touches are asked for; false: none has. */
static __always_inline bool chooses_some(u64 mapping, u64 first, u64 last)
{
	return (first ^ last) >> STRETCH_SHIFT || is_chosen(number_of_page(mapping, first));
}

static __always_inline bool touches_some(u64 mapping, u64 first, u64 last)
{
	return with_touches && chooses_some(mapping, first, last);
}

/* A read: how its pages were found, as far as that is the same for all of them. */
static __always_inline void touch_read(struct row *row, u64 mapping, u64 first, u64 last, u64 bytes, u64 absent)
{
	u32 how = TOUCH_READ;

	if (!with_uses)
		return;
	/* Before all else: of most reads no page is chosen. */
	if (!with_sketches && likely(!touches_some(mapping, first, last)))
		return;
	if (first > last)
		return;
	if (!absent)
		how |= TOUCH_HIT;
	else if (absent > last - first)
		how |= TOUCH_MISSED;
	if (bytes < (last - first + 1) << PAGE_SHIFT)
		how |= TOUCH_PART;
	touch(row, mapping, first, last, how);
}

/* A write whose end is seen. The simulation takes pages that become dirty (on_dirty), and needs no more. */
static __always_inline void touch_write(struct row *row, u64 mapping, u64 first, u64 last)
{
	if (with_sketches)
		touch(row, mapping, first, last, TOUCH_WRITE);
}

/* Pages became dirty as a whole folio: inside a request that is seen to end, that says which it was of. */
static __always_inline void touch_dirty(struct row *row, u64 mapping, u64 first, u64 last)
{
	if (with_sketches && row && (row->depth | row->writing))
		return;
	touch(row, mapping, first, last, TOUCH_WRITE);
}

#endif
