/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that get another name, user or cgroup, or end: their row is closed, and the next event makes a new one. */
#ifndef CACHETOP_PROCESS_H
#define CACHETOP_PROCESS_H

#include "thread.h"

/* prctl or exec; called by the thread itself or, through /proc/PID/comm, by another. */
static __always_inline void on_rename(u64 task)
{
	end_row(task);
}

static __always_inline void on_exit(void)
{
	end_row(bpf_get_current_task());
}

/* commit_creds(new), which also comes where nothing changes that a row says. */
static __always_inline void on_user(struct cred *new)
{
	struct row *row = own_row(false);

	if (row && row->uid != BPF_CORE_READ(new, uid.val))
		end_row(bpf_get_current_task());
}

static long end_if_of(void *map, u64 *task, u32 *number, u32 *pid)
{
	struct row *row = row_at(*number);

	if (row && (row->tgid == *pid || row->tid == *pid))
		end_row(*task);
	return 0;
}

/*
 * A thread was moved to another cgroup, or a process by its leader. That it was the leader alone is not told: the
 * other threads get new rows, too, which say the same as the ones before.
 */
static __always_inline void on_cgroup(u32 pid)
{
	bpf_for_each_map_elem(&row_numbers, end_if_of, &pid, 0);
}

#endif
