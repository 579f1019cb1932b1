/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which processes belong to the command that is watched: those that it made, and those that they made. A process
 * joins when it is forked, so that one whose parent has gone since still belongs. User space enters processes that
 * were there before.
 */
#ifndef CACHETOP_FOLLOW_H
#define CACHETOP_FOLLOW_H

#include "core.h"
#include "wanted.h"

/* Set before load. */
const volatile bool with_follow = false; /* a command is watched */

/* Set by user space while it starts the command: the number of the run, else 0. */
volatile u32 spawning = 0;

volatile u64 followed_full = 0; /* processes of the command that there was no room for */

/* A process of the command. */
struct member {
	u64 run; /* that it belongs to */
	u64 signal; /* address of what its threads share: an id may be another's; 0: entered by user space */
};

/* The processes of the command, by thread-group id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct member);
} followed SEC(".maps");

/* The run that a process belongs to; 0: none. */
static __always_inline u32 run_of(u32 tgid)
{
	struct member *m;

	if (!with_follow)
		return 0;
	m = bpf_map_lookup_elem(&followed, &tgid);
	return m ? m->run : 0;
}

/*
 * What processes and threads of the command used that are gone, whoever waited for them, or nobody: the kernel's own
 * accounts, which /proc has of the living only. Only ever up.
 */
struct gone {
	u64 user; /* ns, as the clock's ticks found them: good for the ratio only */
	u64 system;
	u64 ran; /* ns, exact */
	u64 minor; /* faults */
	u64 major;
	u64 read_bytes; /* from devices and servers */
	u64 write_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct gone);
} used SEC(".maps");

struct signal_struct___used {
	u64 utime;
	u64 stime;
	unsigned long long sum_sched_runtime;
	unsigned long min_flt;
	unsigned long maj_flt;
} __attribute__((preserve_access_index));
struct task_io_accounting___bytes {
	u64 read_bytes;
	u64 write_bytes;
} __attribute__((preserve_access_index));
struct task_struct___used {
	struct signal_struct___used *signal;
	struct task_io_accounting___bytes ioac;
} __attribute__((preserve_access_index));

static __always_inline u64 signal_of(void *task)
{
	return (u64)BPF_CORE_READ((struct task_struct___used *)task, signal);
}

/* A process is gone: the accounts of all its threads have been added up in it. Those of its children are apart. */
static __always_inline void add_process(u64 signal)
{
	struct signal_struct___used *s = (void *)signal;
	struct gone *g;
	u32 zero = 0;

	g = bpf_map_lookup_elem(&used, &zero);
	if (!g)
		return;
	__sync_fetch_and_add(&g->user, BPF_CORE_READ(s, utime));
	__sync_fetch_and_add(&g->system, BPF_CORE_READ(s, stime));
	__sync_fetch_and_add(&g->ran, BPF_CORE_READ(s, sum_sched_runtime));
	__sync_fetch_and_add(&g->minor, BPF_CORE_READ(s, min_flt));
	__sync_fetch_and_add(&g->major, BPF_CORE_READ(s, maj_flt));
}

/* A thread ends: of bytes, a process has only the sum with those of its children. */
static __always_inline void add_thread(void *task)
{
	struct task_struct___used *t = task;
	struct gone *g;
	u32 zero = 0;

	g = bpf_map_lookup_elem(&used, &zero);
	if (!g || !bpf_core_field_exists(t->ioac.read_bytes))
		return;
	__sync_fetch_and_add(&g->read_bytes, BPF_CORE_READ(t, ioac.read_bytes));
	__sync_fetch_and_add(&g->write_bytes, BPF_CORE_READ(t, ioac.write_bytes));
}

#endif
