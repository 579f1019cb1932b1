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

#endif
