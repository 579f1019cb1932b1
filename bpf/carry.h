/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Pages that one try of an asynchronous request added, and a later one will deliver or take. */
#ifndef CACHETOP_CARRY_H
#define CACHETOP_CARRY_H

#include "thread.h"

/*
 * Pages that an asynchronous request (io_uring) added in a try that did not deliver them: misses of the try that will.
 */
struct carry_key {
	u64 key;
	u64 pos;
};

struct carry {
	u64 mapping;
	u64 first;
	u64 last;
	u64 added;
};

/* Nothing is pushed out: what finds no room is counted as lost. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct carry_key);
	__type(value, struct carry);
} carried SEC(".maps");

/* How many are carried: mostly none, and then nobody looks. */
volatile u64 carrying = 0;

/* Raised in the ledger's filter, too: reads of this mapping have something to look for. */
static __always_inline void count_carried(u64 mapping, s64 n)
{
	__sync_fetch_and_add(&carrying, n);
	__sync_fetch_and_add(filter_slot(mapping), n);
}

static __always_inline bool carry(struct carry_key *key, struct carry *c)
{
	struct carry *old = bpf_map_lookup_elem(&carried, key);
	int err;

	if (old)
		count_carried(old->mapping, -1);
	err = note(&carried, key, c);
	if (!err) {
		count_carried(c->mapping, 1);
		return true;
	}
	/* One that is there is always replaced, unless the table is busy. */
	if (old)
		forget(&carried, key);
	count_one(err == -E2BIG ? C_LOST_FRAMES : C_LOST_BUSY);
	return false;
}

/* Takes what a try before has left for this one, into the frame: as if this one had added it. */
static __always_inline bool take_carried(struct carry_key *key, u64 mapping, struct frame *f)
{
	struct carry *c = bpf_map_lookup_elem(&carried, key);

	if (!c || c->mapping != mapping)
		return false;
	note_added(f, c->first, c->last, c->added);
	forget(&carried, key);
	return true;
}

/* Of what was added for a request, how much lies behind its last page: added, but not delivered by it. */
static __always_inline u64 beyond(struct frame *f, u64 last)
{
	u64 rest;

	if (!f->added || f->added_last <= last)
		return 0;
	/* The pages added are one run but for rare cases. */
	rest = f->added_last - (f->added_first > last ? f->added_first - 1 : last);
	return rest > f->added ? f->added : rest;
}

#endif
