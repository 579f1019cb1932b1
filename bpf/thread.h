/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What is remembered of each thread that reads. */
#ifndef CACHETOP_THREAD_H
#define CACHETOP_THREAD_H

#include "ledger.h"

#define MAX_DEPTH 4 /* overlay on loop on a file system, and one to spare; a power of two */

/* A read request in progress. */
struct frame {
	u64 mapping;
	u64 key;
	u64 pos;
	u64 already; /* delivered before this function was called, and part of what it returns */
	u64 first; /* pages asked for, clipped to the end of file; first > last: none */
	u64 last;
	u64 added; /* pages of the request that this thread added, and the range they lie in */
	u64 added_first;
	u64 added_last;
	u64 absent; /* tmpfs: pages of the request that were not in memory when it began */
	u64 dropped; /* prefetched pages of the request that it used and dropped itself */
	u64 async;
};

/* The newest file-mapping fault of the thread. */
struct fault {
	u64 mapping;
	u64 index;
};

struct thread {
	u32 depth;
	u32 readahead; /* how deep inside the read-ahead functions */
	struct fault fault;
	struct frame frame[MAX_DEPTH];
};

/* Entries are made once per thread and go when it exits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct carry_key);
	__type(value, struct carry);
} carried SEC(".maps");

static const struct thread no_thread;

static __always_inline struct thread *thread_of(bool create)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = id;
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);

	if (t || !create || is_self(id >> 32))
		return t;
	bpf_map_update_elem(&threads, &tid, &no_thread, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		count_one(C_LOST_FRAMES);
	return t;
}

#endif
