/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The request that each thread is in or was in last, where functions cannot be bracketed (calls.h). */
#ifndef CACHETOP_PENDING_H
#define CACHETOP_PENDING_H

#include "faultcall.h"

#define MAX_EXTENTS 16

/*
 * The tick counts requests of threads that run on. Who counts one is decided by its state, a number of the request with
 * one of these in the lowest bits. The thread changes what stands here only while the state is not PENDING (but for the
 * row and for additions behind the `owned` ones), which it must take away from the tick first; each request that waits
 * has a number of its own. The tick copies the request, and counts the copy if the state is still the one that it had seen
 * before. It writes nothing but the state, and leaves it to the thread to drop what was counted.
 */
enum call_state {
	COUNTED = 0, /* or none yet */
	PENDING = 1,
	TAKEN = 3, /* counted by the tick; the thread has not seen that yet */
};
#define CALL_STATE 3
#define CALL_CHANGES 1 /* set in those that the thread must look at */
#define NEXT_CALL 4

struct extent {
	u64 first;
	u64 last;
};

struct call {
	u64 mapping;
	u64 syscr;
	u64 first; /* of the request, in pages, and clipped to the end of file in `end` */
	u64 end;
	u64 last; /* as the event says it: not clipped */
	u64 index; /* of the newest event */
	u64 bytes;
	u64 pos; /* where these begin, as far as that is known */
	u64 ahead; /* pages of the request that were prefetched and unused */
	u64 state;
	struct faults faults;
	/* Of the io_uring request that the thread submitted last: what was requested; no bytes: not known. */
	u64 uring_pos;
	u64 uring_bytes;
	/* Pages that this thread added, not told apart yet: the first `owned` belong to the request above. */
	u64 extent_mapping;
	u64 extent_syscr;
	u32 owned;
	u32 extents;
	u32 leftover_is_readahead;
	union {
		struct {
			u32 row;
			u32 made; /* of the row: another one means that it has been freed since */
		};
		u64 row_and_made; /* written as one, under the eyes of the tick */
	};
	u32 file; /* its row, and that row's `made` */
	u32 file_made;
	u32 tid; /* whose it is, 0: nobody's; it may become another thread's under the eyes of the tick */
	u32 number; /* of this element */
	u32 noted; /* its thread is among those that the tick looks at */
	u16 by_syscall; /* syscr will rise when the call ends */
	u16 marked; /* some of its pages are marked in the ledger */
	struct extent extent[MAX_EXTENTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct call);
} calls SEC(".maps");

/*
 * Which of them a thread has, by the address of its task_struct: executing may change its number. Its rows remember
 * that (struct row), so that nobody searches twice.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} call_numbers SEC(".maps");

/* Those that have been given back; from calls_made on, none has been in use yet. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__type(value, u32);
} free_calls SEC(".maps");

u32 calls_made = 0;

/*
 * Calls that wait for being settled at the tick, in a ring: each entry says which of all it is, above, and the number of
 * the call, below. So a tick costs what waits, not what is there. When more wait than there is room for, it walks over all
 * calls.
 */
#define UNSETTLED 4096

u64 unsettled[UNSETTLED];
u64 unsettled_noted = 0;
u64 unsettled_looked_at = 0;

/*
 * After the call says so itself. The tick clears `noted` before it looks at the call; both ways are atomics, so that a
 * call that waits is either seen or noted again.
 */
static __always_inline void note_unsettled(struct call *c)
{
	u64 n;

	if (__sync_lock_test_and_set(&c->noted, 1))
		return;
	n = __sync_fetch_and_add(&unsettled_noted, 1);
	/* In one word, so that nobody reads half of it. The number is one more, since 0 is what nobody has written. */
	*(volatile u64 *)&unsettled[n & (UNSETTLED - 1)] = (n + 1) << 32 | c->number;
}

/* The row of the thread that the call belongs to; nobody's, if it has got another name since. */
static __always_inline bool account_call(struct account *a, struct call *c)
{
	a->nobody = 0;
	a->row = row_at(c->row);
	if (a->row && a->row->made == c->made && a->row->state != ROW_FREE)
		return true;
	return account_nobody(a);
}

static __always_inline struct call *call_at(u32 n)
{
	return bpf_map_lookup_elem(&calls, &n);
}

/* A place that nobody uses; null: there is none. */
static __always_inline struct call *free_call(void)
{
	struct call *c;
	u32 n;

	if (!pop_number(&free_calls, &n))
		return call_at(n);
	n = __sync_fetch_and_add(&calls_made, 1);
	c = call_at(n);
	if (c)
		c->number = n;
	else
		__sync_fetch_and_sub(&calls_made, 1);
	return c;
}

/* The running thread's, made if it has none; null where there is no room. */
static __noinline struct call *find_call(void)
{
	u64 task = bpf_get_current_task();
	u32 n, *known = bpf_map_lookup_elem(&call_numbers, &task);
	struct call *c;

	if (known) {
		c = call_at(*known);
		if (c)
			c->tid = bpf_get_current_pid_tgid();
		return c;
	}
	c = free_call();
	if (!c) {
		count_one(C_LOST_FRAMES);
		return 0;
	}
	n = c->number;
	if (note(&call_numbers, &task, &n)) {
		count_one(C_LOST_BUSY);
		push_number(&free_calls, &n);
		return 0;
	}
	/* Their numbers stay: the tick may still be looking at what was here before. */
	c->state &= ~(u64)CALL_STATE;
	c->faults.state &= ~(u64)FAULT_STATE;
	c->faults.around_state &= ~(u64)FAULT_STATE;
	c->mapping = c->syscr = c->last = 0;
	c->extents = c->owned = 0;
	c->marked = false;
	c->uring_bytes = 0;
	c->tid = bpf_get_current_pid_tgid();
	return c;
}

static __always_inline struct call *call_of(struct row *row)
{
	struct call *c;

	if (row && row->call) {
		c = call_at(row->call - 1);
	} else {
		c = find_call();
		if (c && row)
			row->call = c->number + 1;
	}
	if (!c)
		return 0;
	*(volatile u64 *)&c->row_and_made = row ? (u64)row->made << 32 | row->number : ~0U;
	if (row)
		row->beside.own.idle = false;
	return c;
}

/* The thread has ended: its place is another's. Its row ends with it. */
static __always_inline void forget_call(struct call *c, u64 task)
{
	u32 n = c->number;

	c->tid = 0;
	forget(&call_numbers, &task);
	push_number(&free_calls, &n);
}

#endif
