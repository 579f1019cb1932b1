/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Where events are added up: the whole system, and each process. Counters only rise. */
#ifndef CACHETOP_ACCOUNT_H
#define CACHETOP_ACCOUNT_H

#include "core.h"
#include "wire.h"

/* Set before load. */
const volatile u32 self_tgid = 0; /* the monitor's own process, left out; 0: counted like any other */

/* Set once everything is attached: until then no event counts. */
volatile bool ready = false;

struct stats {
	u64 v[C_MAX];
};

/* One row per process and CPU that it ran on: written by one CPU, so rows cost memory only where a process was. */
struct process_key {
	u32 tgid;
	u32 cpu;
};

struct process {
	char comm[16];
	u32 uid;
	u32 dead; /* the last thread is gone: user space may forget it once it has read the last values */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct process_key);
	__type(value, struct stats);
} process_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct process);
} processes SEC(".maps");

static const struct stats no_stats;

/* The two places where an event is added. The second is null where the process table has no room. */
struct account {
	struct stats *total;
	struct stats *process;
};

#define COUNT(a, counter, n)                                                                                    \
	do {                                                                                                    \
		u64 __n = (n);                                                                                  \
		__sync_fetch_and_add(&(a)->total->v[counter], __n);                                             \
		if ((a)->process)                                                                               \
			__sync_fetch_and_add(&(a)->process->v[counter], __n);                                   \
	} while (0)

static __always_inline bool is_self(u32 tgid)
{
	return self_tgid && tgid == self_tgid;
}

static __always_inline void describe_process(struct process *p)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read_str(p->comm, sizeof(p->comm), &leader->comm);
}

static __noinline struct stats *new_process(u32 tgid)
{
	struct process_key key = {.tgid = tgid, .cpu = bpf_get_smp_processor_id()};

	if (!bpf_map_lookup_elem(&processes, &tgid)) {
		struct process p = {};

		p.uid = (u32)bpf_get_current_uid_gid();
		describe_process(&p);
		if (bpf_map_update_elem(&processes, &tgid, &p, BPF_ANY))
			return 0;
	}
	if (bpf_map_update_elem(&process_stats, &key, &no_stats, BPF_NOEXIST))
		return 0;
	return bpf_map_lookup_elem(&process_stats, &key);
}

/* Totals never depend on the process table having room. */
static __always_inline bool account_total(struct account *a)
{
	u32 zero = 0;

	a->process = 0;
	a->total = bpf_map_lookup_elem(&totals, &zero);
	return a->total;
}

static __always_inline bool account_open(struct account *a, u32 tgid)
{
	struct process_key key = {.tgid = tgid, .cpu = bpf_get_smp_processor_id()};

	if (!account_total(a))
		return false;
	a->process = bpf_map_lookup_elem(&process_stats, &key);
	if (!a->process) {
		a->process = new_process(tgid);
		if (!a->process)
			__sync_fetch_and_add(&a->total->v[C_LOST_PROCESSES], 1);
	}
	return true;
}

static __always_inline void count_one(u32 counter)
{
	struct account a;

	if (account_total(&a) && counter < C_MAX)
		__sync_fetch_and_add(&a.total->v[counter], 1);
}

#endif
