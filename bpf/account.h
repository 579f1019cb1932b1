/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where events are added up: a row for each thread under one name. A row is written by its own thread, so that
 * counting reads and writes needs neither atomics nor a per-CPU copy; user space reads the rows in place. What has
 * no row (the table is full, or an event is nobody's doing) goes to `totals`. Counters only rise.
 */
#ifndef CACHETOP_ACCOUNT_H
#define CACHETOP_ACCOUNT_H

#include "core.h"
#include "follow.h"
#include "name.h"
#include "table.h"
#include "wanted.h"
#include "wire.h"

#define SLOT_BITS 15

/* Set before load. */
const volatile bool with_files = false; /* somebody asks which files (file.h) */

const volatile bool with_plain = false; /* requests are counted without a hook at their end (plain.h) */

const volatile bool with_plain_faults = false; /* page faults are, too (plainfault.h) */

const volatile u32 totals_mask = 0; /* of the number of a processor */

/* Set once everything is attached: until then no event counts. */
volatile bool ready = false;

struct stats {
	u64 v[C_MAX];
};

/*
 * Which row a thread has, by the address of its task_struct, which is its own until it is freed. Written by the thread
 * alone, or for it where it cannot run: before it began and after it has gone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u32);
} row_numbers SEC(".maps");

/*
 * The same, found without a search: who comes first has the slot, the others use the table. A number here proves
 * nothing: the row itself says whose it is (`task`), so that a slot may be out of date, or be shared. A variable, since
 * that costs ten instructions less than a map.
 */
u32 slots[1 << SLOT_BITS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct row);
} rows SEC(".maps");

/* For each ROWS_MAPPED of them whether a row of it was taken since user space has asked last. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} rows_taken SEC(".maps");

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

/*
 * By processor; those that share a place add up there. Not a table of the kind made for this: that can be read by bpf(2) alone
 * (chores.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} totals SEC(".maps");

/*
 * Pages that went, by whether reclaim took them. They are many, and nobody's: without a look-up, by the number of the processor. Those
 * that share a place add up there.
 */
#define WENT_CPUS 256

struct went {
	u64 pages[2];
	u64 apart[6]; /* a line of the processor's cache */
} went[WENT_CPUS] __attribute__((aligned(64)));

#define barrier() asm volatile("" ::: "memory")

/* Counters of the row have changed. The mark comes after them: else a tick in between would take it, and find nothing. */
static __always_inline void mark_group(struct row *row, u32 group)
{
	barrier();
	*(volatile unsigned char *)&row->touched[group] = 1;
}

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
	u32 place = bpf_get_smp_processor_id() & totals_mask;

	a->row = 0;
	a->nobody = bpf_map_lookup_elem(&totals, &place);
	return a->nobody;
}

static __always_inline void count_nobodys(u32 counter, u64 n)
{
	struct account a;

	if (account_nobody(&a) && counter < C_MAX)
		__sync_fetch_and_add(&a.nobody->v[counter], n);
}

static __always_inline void count_one(u32 counter)
{
	count_nobodys(counter, 1);
}

static __always_inline void count_gone(u64 pages, bool evicted)
{
	u32 cpu = bpf_get_smp_processor_id();

	__sync_fetch_and_add(&went[cpu & (WENT_CPUS - 1)].pages[evicted], pages);
}

/*
 * A row was taken, and says so itself by now: user space clears the word, and then looks whether the rows are free. (Stores are seen
 * in their order on x86.)
 */
static __always_inline void tell_taken(void *taken, u32 n)
{
	u32 piece = n / ROWS_MAPPED;
	u64 *word = bpf_map_lookup_elem(taken, &piece);

	barrier();
	if (word)
		*(volatile u64 *)word = 1;
}

static __always_inline u64 slot_of(u64 task)
{
	return task >> 13 & ((1 << SLOT_BITS) - 1); /* task structs are some kilobytes apart */
}

static __always_inline struct row *row_at(u32 n)
{
	return bpf_map_lookup_elem(&rows, &n);
}

#define NO_FILE 0xffffffff

/* Process, when it began, name, user and cgroup of a row as one number that no other has. */
static __always_inline u64 owner_of(struct row *row)
{
	const u64 *name = (const u64 *)row->process, prime = 0x9e3779b97f4a7c15ULL;
	u64 n = row->tgid;

	n = (n ^ n >> 29) * prime + row->begun; /* or whoever has its number next would have its files */
	n = (n ^ n >> 29) * prime + row->uid;
	n = (n ^ n >> 29) * prime + row->cgroup;
	n = (n ^ n >> 29) * prime + name[0];
	n = (n ^ n >> 29) * prime + name[1];
	return (n ^ n >> 29) * prime;
}

static __always_inline u64 cgroup_of(struct task_struct *task)
{
	return id_of_group(group_of(task));
}

static __always_inline u64 running_cgroup(void)
{
	if (knows_running() && !cgroup_v1)
		return bpf_get_current_task_btf()->cgroups->dfl_cgrp->kn->id;
	return cgroup_of((void *)bpf_get_current_task());
}

/* Whether what the running thread does is to be counted. */
static __noinline int is_asked_for(u32 tgid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	char process[NAME] __attribute__((aligned(8)));

	/* Known before it is loaded: where everything counts the verifier passes the rest by. */
	if (!only_some)
		return true;
	name_of_process(process);
	return is_wanted(task, tgid, process);
}

/* CONFIG_TASK_XACCT */
static __always_inline bool counts_calls(struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.syscr) && bpf_core_field_exists(task->ioac.rchar);
}

/* Read or write calls of a thread that have ended, and their bytes: the kernel counts bytes, then the call. */
static __always_inline u64 calls_ended(struct task_struct *task, bool writes)
{
	if (!counts_calls(task))
		return 0;
	return writes ? *(volatile u64 *)&task->ioac.syscw : *(volatile u64 *)&task->ioac.syscr;
}

static __always_inline u64 chars_moved(struct task_struct *task, bool writes)
{
	if (!counts_calls(task))
		return 0;
	return writes ? *(volatile u64 *)&task->ioac.wchar : *(volatile u64 *)&task->ioac.rchar;
}

/* Whether the plain request of the running thread has ended. */
static __always_inline bool plain_has_ended(struct row *row)
{
	return calls_ended(bpf_get_current_task_btf(), row->plain_writes) != row->plain_calls;
}

/*
 * Bytes of a request that has ended, `calls` calls of its kind ago, which moved `chars` bytes. Of the last call the kernel's
 * count says what it delivered: also more than was there when it began, if the file has grown.
 */
static __always_inline u64 plain_delivered(u64 bytes, u64 calls, u64 chars)
{
	return calls == 1 ? chars : bytes;
}

/*
 * The same seen by somebody else, while the thread may be in its next call already, part of which may be in `chars`: no
 * more than the thread itself will count.
 */
static __always_inline u64 plain_delivered_at_least(u64 bytes, u64 calls, u64 chars)
{
	return calls == 1 && chars < bytes ? chars : bytes;
}

/*
 * The request of a thread that is to be counted (plain.h) has ended, or the thread has: it is counted. By the thread itself, or
 * for one that is `gone`. No call of another function may be below this one: it stands deep in all that makes rows. Global:
 * verified once in each program, not at each call.
 */
int settle_plain_of(u32 number, u32 gone);

static __always_inline void settle_plain(struct row *row, bool gone)
{
	settle_plain_of(row->number, gone);
}

/* Faults of a thread that have been served, which the kernel counts at the end of each: not those that fail or are tried again. */
static __always_inline u64 served_to(struct task_struct *task)
{
	return task->min_flt + task->maj_flt;
}

/* In `plain_fault` (plainfault.h), below the faults of its thread that had been served when it began. */
#define PLAIN_FAULT 1
#define PLAIN_FAULT_AGAIN 2 /* it was counted when it was tried before */
#define PLAIN_FAULT_SHIFT 2

/*
 * No event of its thread will settle a fault in this row: the tick counts it, unless it is none. `going`: the thread is the
 * running one, which can be asked. No atomic that fetches, which would be in programs that are loaded on kernels without these.
 */
static __always_inline void leave_plain_fault(struct row *row, bool going)
{
	u64 fault;

	if (!with_plain_faults)
		return;
	fault = row->plain_fault;
	if (fault & PLAIN_FAULT_AGAIN ||
	    (going && fault >> PLAIN_FAULT_SHIFT == served_to(bpf_get_current_task_btf())))
		row->plain_fault = 0;
}

#endif
