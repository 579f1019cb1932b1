/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that get another name, user or cgroup, or end: their row is closed, and the next event makes a new one. */
#ifndef CACHETOP_PROCESS_H
#define CACHETOP_PROCESS_H

#include "wait.h"

/*
 * The running thread is about to get another name. False: it does so all the time, and keeps its row for now, as if another had
 * renamed it.
 */
static __always_inline bool on_own_rename(void)
{
	u32 id = bpf_get_current_pid_tgid();

	if (changes_too_often())
		return false;
	if (names_given)
		forget(&given_names, &id);
	end_row(bpf_get_current_task());
	return true;
}

/* A thread is about to get this name from another one, through /proc/PID/comm. What has its row is to be marked then. */
static __always_inline void on_given_name(u32 id, const void *name)
{
	struct name given;

	read_name((char *)&given, name);
	__sync_fetch_and_add(&names_given, 1);
	/* Rather none than the one before. */
	if (note(&given_names, &id, &given))
		forget(&given_names, &id);
}

/*
 * `task` is about to get this name: by prctl or exec of its own or from another. What comes here last is what the thread will be
 * called, but where two others name it at once: up to 6.12 and some time after the kernel did so under a lock.
 */
static __always_inline void on_rename(u64 task, const void *name)
{
	if (task == bpf_get_current_task() && on_own_rename())
		return;
	on_given_name(BPF_CORE_READ((struct task_struct *)task, pid), name);
	mark_row(task);
}

static long mark_if_of(void *map, u64 *task, u32 *number, u32 *pid)
{
	struct row *row = row_at(*number);

	if (row && (row->tgid == *pid || row->tid == *pid))
		row->task = 0; /* as mark_row */
	return 0;
}

/*
 * What a thread of this number has, and all threads of the process if it is the leader: what does not change finds that nothing has
 * changed.
 */
static __always_inline void mark_rows_of(u32 id)
{
	bpf_for_each_map_elem(&row_numbers, mark_if_of, &id, 0);
}

/* The same of a thread of which the number is known alone. The running one's row need not be searched for. */
static __always_inline void on_rename_of(u32 id, const void *name)
{
	bool own = id == (u32)bpf_get_current_pid_tgid();

	if (own && on_own_rename())
		return;
	on_given_name(id, name);
	if (own)
		mark_row(bpf_get_current_task());
	else
		mark_rows_of(id);
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
	u32 id;

	if (names_given) {
		id = BPF_CORE_READ((struct task_struct *)task, pid);
		forget(&given_names, &id);
	}
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

/* A thread was moved to another cgroup, or a process by its leader. That it was the leader alone is not known. */
static __always_inline void on_cgroup(u32 pid)
{
	mark_rows_of(pid);
}

#endif
