/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which pages are used, page by page and in order, for the simulation of other sizes of the cache (`--what-if`): those
 * alone whose hash lies below a threshold, so that a page is always chosen or never. Where nobody asks, none of this is
 * there: `with_touches` is a constant, and the kernel drops what cannot be reached.
 *
 * The same functions look at all pages of a request for the sketches of the working set (sketch.h), instead.
 */
#ifndef CACHETOP_TOUCH_H
#define CACHETOP_TOUCH_H

#include "sketch.h"

#define BPF_RB_NO_WAKEUP 1

/* Set before load. */
const volatile bool with_touches = false;

/* Pages are chosen whose hash, 32 bits of it, is below. 0: none. */
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
};

struct touched {
	u64 page; /* hash of mapping and index */
	u32 tid;
	u32 how;
};

/* Sized before load where it is needed. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} touches SEC(".maps");

#define TOUCH_STEP 32

static __always_inline u64 hash_of_page(u64 mapping, u64 index)
{
	u64 h = (mapping >> 3) * 0x9e3779b97f4a7c15ULL + index;

	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

static __always_inline void touch_page(u64 hash, u64 who)
{
	struct touched t = {.page = hash, .tid = who, .how = who >> 32};

	if (bpf_ringbuf_output(&touches, &t, sizeof(t), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&touches_dropped, 1);
}

/* Takes TOUCH_STEP steps of so many pages, as far as there are pages left. */
#define TOUCH_STEPS(pages, ...)                                                                                 \
	for (u32 i = 0; i < TOUCH_STEP && first <= last; i++) {                                                 \
		__VA_ARGS__;                                                                                    \
		first += pages;                                                                                 \
	}

/*
 * Every page of a stretch is looked at, by three functions of one another's steps: 128 MiB. Global, so that the verifier
 * looks at each loop once, and not at every call of it.
 */
__noinline int touch_few(u64 mapping, u64 first, u64 last, u64 who)
{
	u32 zero = 0, number = who, now = sketch_now;
	u8 *all, *own = 0;
	u64 hash;

	if (with_sketches) {
		all = bpf_map_lookup_elem(&sketch_all, &zero);
		if (sketch_by != SKETCH_NOBODY)
			own = bpf_map_lookup_elem(&sketches, &number);
		if (all && now)
			TOUCH_STEPS(1, sketch_page(all, own, hash_of_page(mapping, first), now))
		return 0;
	}
	if (with_touches)
		TOUCH_STEPS(1, hash = hash_of_page(mapping, first);
			    if (hash >> 32 < touch_below) touch_page(hash, who))
	return 0;
}

__noinline int touch_more(u64 mapping, u64 first, u64 last, u64 who)
{
	if (with_touches || with_sketches)
		TOUCH_STEPS(TOUCH_STEP, touch_few(mapping, first, last, who))
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
	TOUCH_STEPS(TOUCH_STEP * TOUCH_STEP, touch_more(mapping, first, last, who))
	if (first <= last)
		__sync_fetch_and_add(&touches_beyond, last - first + 1);
	return 0;
}

/* Pages [first, last] are used by the thread of this row. */
static __always_inline void touch(struct row *row, u64 mapping, u64 first, u64 last, u32 how)
{
	u64 hash, who;

	if ((!with_touches && !with_sketches) || first > last)
		return;
	if (with_sketches && how >= TOUCH_GONE && how <= TOUCH_AROUND)
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
	hash = hash_of_page(mapping, first);
	if (hash >> 32 < touch_below)
		touch_few(mapping, first, last, who);
}

/* A read: how its pages were found, as far as that is the same for all of them. */
static __always_inline void touch_read(struct row *row, u64 mapping, u64 first, u64 last, u64 bytes, u64 absent)
{
	u32 how = TOUCH_READ;

	if ((!with_touches && !with_sketches) || first > last)
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
