/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that get another name, user or cgroup, or end: their row is closed, and the next event makes a new one. */
#ifndef CACHETOP_PROCESS_H
#define CACHETOP_PROCESS_H

#include "wait.h"

/*
 * `task` is about to get this name: by prctl or exec of its own or, through /proc/PID/comm, from another. Under the lock
 * of the name, so that what comes here last is what the thread will be called. One that renames itself all the time keeps its
 * row for now, as if another had renamed it.
 */
static __always_inline void on_rename(u64 task, const void *name)
{
	struct name given;

	if (task == bpf_get_current_task() && !changes_too_often()) {
		if (names_given)
			forget(&given_names, &task);
		end_row(task);
		return;
	}
	read_name((char *)&given, name);
	__sync_fetch_and_add(&names_given, 1);
	/* Rather none than the one before. */
	if (note(&given_names, &task, &given))
		forget(&given_names, &task);
	mark_row(task);
}

/* Of one that never left the processor, what it waited for its first has not been noted yet. Who had no page has no row. */
static __always_inline void note_last(void)
{
	struct row *row;

	if (!ready || !run_of(bpf_get_current_pid_tgid() >> 32))
		return;
	row = row_of(bpf_get_current_task(), running_since());
	if (row)
		note_queued(row, (void *)bpf_get_current_task());
}

static __always_inline void on_exit(void)
{
	if (with_follow)
		note_last();
	end_row(bpf_get_current_task());
}

/* No thread is at this address any more, or none yet: what was known of the last one goes. */
static __always_inline void forget_task(u64 task)
{
	if (names_given)
		forget(&given_names, &task);
	end_row(task);
}

/* commit_creds(new), which also comes where nothing changes that a row says. */
static __always_inline void on_user(struct cred *new)
{
	struct row *row = own_row(false);

	if (!row || row->uid == BPF_CORE_READ(new, uid.val))
		return;
	if (changes_too_often())
		mark_row(bpf_get_current_task());
	else
		end_row(bpf_get_current_task());
}

static long mark_if_of(void *map, u64 *task, u32 *number, u32 *pid)
{
	struct row *row = row_at(*number);

	if (row && (row->tgid == *pid || row->tid == *pid))
		row->task = 0; /* as mark_row */
	return 0;
}

/*
 * A thread was moved to another cgroup, or a process by its leader. That it was the leader alone is not known: the
 * other threads look, too, and find that nothing has changed.
 */
static __always_inline void on_cgroup(u32 pid)
{
	bpf_for_each_map_elem(&row_numbers, mark_if_of, &pid, 0);
}

#endif
