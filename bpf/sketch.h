/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How many distinct pages are used, by a sketch of bounded size for each owner (`--working-set`): a HyperLogLog whose
 * registers keep, instead of the highest rank that was met, when each rank was met last. From that the estimate for any
 * stretch of time up to now can be made. A mark is one byte, the number of a slot of time that user space counts: a page
 * that is used costs one look and seldom a store, no atomic instruction, and no comparison of ranks. Two threads that
 * store at once store the same.
 *
 * Where nobody asks none of this is there: `with_sketches` is a constant. All owners are of one kind, which is asked for.
 */
#ifndef CACHETOP_SKETCH_H
#define CACHETOP_SKETCH_H

#include "file.h"

/* The same numbers in src/kernel/sketches.rs. */
#define SKETCH_RANKS 24
#define SKETCH_BITS 10 /* of an owner: 2^10 registers */
#define SKETCH_ALL_BITS 12 /* of everything */

enum sketch_by {
	SKETCH_NOBODY,
	SKETCH_PROCESS,
	SKETCH_CGROUP,
	SKETCH_FILE,
};

/* Set before load. */
const volatile bool with_sketches = false;
const volatile u32 sketch_by = SKETCH_NOBODY;

/* The slot of time that it is: 1 to 255, and from the beginning. 0: none yet. */
volatile u32 sketch_now = 0;

volatile u64 sketch_refused = 0; /* how often an owner was met for which there is no sketch */

/* A byte for each rank and register. The lower ranks, which most pages have, stand together. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, SKETCH_RANKS << SKETCH_ALL_BITS);
} sketch_all SEC(".maps");

/* The same by owner. The first is of all that have none of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, SKETCH_RANKS << SKETCH_BITS);
} sketches SEC(".maps");

/*
 * Who: a process by its id and when it began, a cgroup by its number, a file by its inode's number, and device and
 * generation.
 */
struct sketch_key {
	u64 a;
	u64 b;
};

struct sketch_owner {
	struct sketch_key key;
	char process[16]; /* what it was called last, if it is a process */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sketch_key);
	__type(value, u32);
} sketch_numbers SEC(".maps");

/* With the numbers of the sketches. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sketch_owner);
} sketch_owners SEC(".maps");

/*
 * Numbers of sketches that nobody has. User space gives those of processes back that have ended; others not: what was used may be
 * asked for an hour later.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} sketch_free SEC(".maps");

/*
 * Which bit it is, of a word with one bit set, by a multiplication: there is no instruction that counts zeros. Not static, or the
 * compiler puts it in a section of its own, of constants that can be merged, and BTF does not say where.
 */
const volatile u8 bit_numbers[32] = {0,	 1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,	8,
				     31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};

static __always_inline u32 rank_of(u64 hash)
{
	u32 word = (u32)(hash >> 32) | 1u << (SKETCH_RANKS - 1);

	return bit_numbers[(word & -word) * 0x077cb531u >> 27];
}

static __always_inline void mark(u8 *at, u8 now)
{
	/* A line that does not change stays in the caches of all processors. */
	if (*(volatile u8 *)at != now)
		*(volatile u8 *)at = now;
}

static __always_inline void sketch_page(u8 *all, u8 *own, u64 hash, u8 now)
{
	u32 rank = rank_of(hash), at = hash & ((1 << SKETCH_ALL_BITS) - 1);

	asm volatile("" : "+r"(rank)); /* keeps the test, which bounds the index for the verifier */
	if (rank >= SKETCH_RANKS)
		return;
	mark(all + (rank << SKETCH_ALL_BITS) + at, now);
	at &= (1 << SKETCH_BITS) - 1;
	if (own)
		mark(own + (rank << SKETCH_BITS) + at, now);
}

/* The sketch of an owner: its number, 0 where there is no room. */
static __noinline u32 find_sketch(struct sketch_key *key, const char *process)
{
	u32 *known = bpf_map_lookup_elem(&sketch_numbers, key), n;
	struct sketch_owner *owner;

	if (known) {
		n = *known;
	} else {
		if (pop_number(&sketch_free, &n))
			return 0;
		if (bpf_map_update_elem(&sketch_numbers, key, &n, BPF_NOEXIST)) {
			/* Another thread was faster, or the kernel refuses it for the moment. */
			push_number(&sketch_free, &n);
			known = bpf_map_lookup_elem(&sketch_numbers, key);
			return known ? *known : 0;
		}
	}
	owner = bpf_map_lookup_elem(&sketch_owners, &n);
	if (!owner)
		return 0;
	owner->key = *key;
	__builtin_memcpy(owner->process, process, sizeof(owner->process));
	return n;
}

/* There was no room, in the slot of time that is noted below this bit. */
#define SKETCH_REFUSED (1u << 31)

/*
 * Where the owner's sketch is noted once it was found: one more than its number, so that 0 is none. Where there was no room,
 * this is noted, too, and it is asked for again in the next slot of time: others may have given theirs back.
 */
static __always_inline u32 noted_sketch(u32 *noted, struct sketch_key *key, const char *process)
{
	u32 n = *(volatile u32 *)noted, refused = SKETCH_REFUSED | sketch_now;

	if (n && n < SKETCH_REFUSED)
		return n - 1;
	if (n == refused)
		return 0;
	n = find_sketch(key, process);
	if (!n)
		__sync_fetch_and_add(&sketch_refused, 1);
	*(volatile u32 *)noted = n ? n + 1 : refused;
	return n;
}

/* The sketch of whoever uses a page of `mapping`, by one more than the number of the thread's row; 0: nobody's. */
static __always_inline u32 sketch_of(u64 who, u64 mapping)
{
	struct row *row = who ? row_at(who - 1) : 0;
	struct sketch_key key = {};
	struct file_row *f;

	if (!row || sketch_by == SKETCH_NOBODY)
		return 0;
	if (sketch_by == SKETCH_FILE) {
		f = file_before(row, mapping);
		if (!f)
			return 0;
		key.a = f->inode;
		key.b = (u64)f->dev << 32 | f->generation;
		return noted_sketch(&f->sketch, &key, f->process);
	}
	key.a = sketch_by == SKETCH_CGROUP ? row->cgroup : row->tgid;
	key.b = sketch_by == SKETCH_CGROUP ? 0 : row->begun;
	return noted_sketch(&row->sketch, &key, row->process);
}

#endif
