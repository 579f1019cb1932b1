/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where events are added up: a row for each thread under one name. A row is written by its own thread, so that
 * counting needs neither atomics nor a per-CPU copy; user space reads the rows in place. What has no row (the table
 * is full, or an event is nobody's doing) goes to `totals`. Counters only rise.
 */
#ifndef CACHETOP_ACCOUNT_H
#define CACHETOP_ACCOUNT_H

#include "core.h"
#include "follow.h"
#include "wanted.h"
#include "wire.h"

#define SLOT_BITS 15
#define TASK_SHIFT 12 /* task structs lie more than a page apart */

/* Set before load. */
const volatile bool with_files = false; /* somebody asks which files (file.h) */

/* Set once everything is attached: until then no event counts. */
volatile bool ready = false;

struct stats {
	u64 v[C_MAX];
};

/* Which row a thread has, by the address of its task_struct, which is its own until it exits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} row_numbers SEC(".maps");

/*
 * The same, found without a search: who comes first has the slot, the others use the table. One word holds both whose
 * it is and the row, so that nobody reads half of it. A variable, since that
 * costs ten instructions less than a map.
 */
u64 slots[1 << SLOT_BITS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct row);
} rows SEC(".maps");

/*
 * Numbers of rows that are free. Filled by user space, also with those that it has read for the last time. A stack, so
 * that the rows in use stay together.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__type(value, u32);
} free_rows SEC(".maps");

/* More of them, for when the table is full: they count in the totals, but nobody's name is shown. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__type(value, u32);
} spare_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} totals SEC(".maps");

/* Where an event is added. */
struct account {
	struct row *row;
	struct stats *nobody; /* where there is no row */
};

/* Atomic, since others may share `nobody` or, in the tracepoint engine, finish a thread's request for it. */
#define COUNT(a, counter, n)                                                                                    \
	do {                                                                                                    \
		u64 __n = (n);                                                                                  \
		if ((a)->row) {                                                                                 \
			__sync_fetch_and_add(&(a)->row->v[counter], __n);                                       \
			(a)->row->touched[ROW_GROUP(counter)] = 1;                                              \
		} else if ((a)->nobody) {                                                                       \
			__sync_fetch_and_add(&(a)->nobody->v[counter], __n);                                    \
		}                                                                                               \
	} while (0)

static __always_inline bool is_self(u32 tgid)
{
	return self_tgid && tgid == self_tgid;
}

/* What belongs to nobody: totals never depend on a table having room. */
static __always_inline bool account_nobody(struct account *a)
{
	u32 zero = 0;

	a->row = 0;
	a->nobody = bpf_map_lookup_elem(&totals, &zero);
	return a->nobody;
}

static __always_inline void count_one(u32 counter)
{
	struct account a;

	if (account_nobody(&a) && counter < C_MAX)
		__sync_fetch_and_add(&a.nobody->v[counter], 1);
}

static __always_inline u64 slot_of(u64 task)
{
	return task >> (TASK_SHIFT + 1) & ((1 << SLOT_BITS) - 1);
}

static __always_inline u32 task_tag(u64 task)
{
	return task >> TASK_SHIFT;
}

static __always_inline u64 slot_word(u64 task, u32 row)
{
	return (u64)row << 32 | task_tag(task);
}

static __always_inline struct row *row_at(u32 n)
{
	return bpf_map_lookup_elem(&rows, &n);
}

/* Process, name, user and cgroup of a row as one number that no other has. */
static __always_inline u64 owner_of(struct row *row)
{
	const u64 *name = (const u64 *)row->process, prime = 0x9e3779b97f4a7c15ULL;
	u64 n = row->tgid;

	n = (n ^ n >> 29) * prime + row->uid;
	n = (n ^ n >> 29) * prime + row->cgroup;
	n = (n ^ n >> 29) * prime + name[0];
	n = (n ^ n >> 29) * prime + name[1];
	return (n ^ n >> 29) * prime;
}

/*
 * The number of a free row. Where only some threads are asked for, `free_rows` are kept for these, and `spare_rows` are
 * everybody's.
 */
static __always_inline bool take_row(u32 *n, bool wanted)
{
	if (wanted && !bpf_map_pop_elem(&free_rows, n))
		return true;
	if (!only_some)
		count_one(C_LOST_ROWS);
	if (!bpf_map_pop_elem(&spare_rows, n))
		return true;
	if (only_some && wanted)
		count_one(C_LOST_ROWS);
	return false;
}

/* Gives the running thread a row. Null where there is no room. */
static __noinline struct row *make_row(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 key = (u64)task, id = bpf_get_current_pid_tgid();
	struct task_struct *leader;
	struct row *row;
	bool wanted;
	u32 n;

	if (is_self(id >> 32))
		return 0;
	wanted = is_wanted(task, id >> 32);
	if (!take_row(&n, wanted))
		return 0;
	row = row_at(n);
	if (!row)
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	row->tgid = id >> 32;
	row->tid = id;
	row->number = n;
	row->uid = (u32)bpf_get_current_uid_gid();
	row->cgroup = BPF_CORE_READ(group_of(task), kn, id);
	row->wanted = wanted;
	row->depth = 0;
	row->entered = 0;
	row->run = run_of(id >> 32);
	row->off_at = 0;
	row->call = 0;
	row->lookup_at = 0;
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	bpf_core_read_str(row->process, sizeof(row->process), &leader->comm);
	if (with_files)
		row->owner = owner_of(row);
	row->made++;
	row->born = bpf_ktime_get_ns();
	row->state = ROW_LIVE;
	if (bpf_map_update_elem(&row_numbers, &key, &n, BPF_ANY)) {
		row->state = ROW_ENDED;
		row->touched[0] = 1;
		return 0;
	}
	return row;
}

/* A thread without a slot. */
static __noinline struct row *search_row(bool create)
{
	u64 task = bpf_get_current_task(), *slot = &slots[slot_of(task)];
	u32 *n;

	n = bpf_map_lookup_elem(&row_numbers, &task);
	if (!n)
		return create ? make_row() : 0;
	if (!*slot)
		*slot = slot_word(task, *n);
	return row_at(*n);
}

/*
 * A pointer as a number. The verifier allows no arithmetic on what it knows to be a pointer, nor to hand it to a global
 * function; what comes out of memory it takes for a number.
 */
static __always_inline u64 number_of(struct row *row, const void *pointer)
{
	*(const void *volatile *)&row->scratch = pointer;
	return *(volatile u64 *)&row->scratch;
}

/* The running thread's row: null if it has none and none was asked for, if it is the monitor, or for want of room. */
static __always_inline struct row *own_row(bool create)
{
	u64 task = bpf_get_current_task(), slot = slots[slot_of(task)];

	if (unlikely((u32)slot != task_tag(task)))
		return search_row(create);
	return row_at(slot >> 32);
}

/* The running thread's row, else nobody's. False: the event is the monitor's own and does not count. */
static __always_inline bool account_open(struct account *a)
{
	a->nobody = 0;
	a->row = own_row(true);
	if (a->row)
		return true;
	if (is_self(bpf_get_current_pid_tgid() >> 32) || !account_nobody(a))
		return false;
	COUNT(a, C_LOST_FRAMES, 1);
	return true;
}

/* The thread is no more what its row says. User space reads the row once more and frees it. */
static __always_inline void end_row(u64 task)
{
	u64 *slot = &slots[slot_of(task)];
	struct row *row;
	u32 *n;

	n = bpf_map_lookup_elem(&row_numbers, &task);
	if (!n)
		return;
	if (*slot == slot_word(task, *n))
		*slot = 0;
	row = row_at(*n);
	bpf_map_delete_elem(&row_numbers, &task);
	if (!row)
		return;
	row->state = ROW_ENDED;
	row->touched[0] = 1;
}

#endif
