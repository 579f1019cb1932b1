/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where the threads of the command that is watched wait: the time from when a thread leaves the processor until it
 * gets it back, by the system call that it is in. And names that the dentry cache did not have.
 */
#ifndef CACHETOP_WAIT_H
#define CACHETOP_WAIT_H

#include "entry.h"
#include "task.h"

#define PF_EXITING 0x00000004
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_NOLOAD 0x400

/* __state was called state until 5.14 (2f064a59a11f). */
struct task_struct___state {
	long state;
} __attribute__((preserve_access_index));

struct sched_info___queue {
	unsigned long pcount;
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct task_struct___queue {
	struct sched_info___queue sched_info;
} __attribute__((preserve_access_index));

struct list_head___children {
	struct list_head___children *next;
} __attribute__((preserve_access_index));

#define JOBCTL_TRAP_FREEZE (1UL << 23) /* since 5.2 */
#define PF_FROZEN 0x00010000 /* up to 6.0; later a thread of the kernel's alone has that bit */

struct task_struct___jobs {
	unsigned long jobctl;
} __attribute__((preserve_access_index));

struct task_struct___iowait {
	unsigned int in_iowait : 1;
} __attribute__((preserve_access_index));

struct task_struct___children {
	struct list_head___children children;
} __attribute__((preserve_access_index));

/*
 * A wait ends when the thread is woken, and lasts for us until it gets a processor. What of it came after the waking is
 * in the kernel's own account, which is complete by the time the thread leaves the processor again, or ends. So is the
 * time from when the thread was made until it ran first, which is a wait for a processor and nothing else. So is what
 * comes after a wait for a child that has ended: all that the child did is counted by then. After vfork it goes on.
 */
static __always_inline void note_queued(struct row *row, struct task_struct *task)
{
	struct task_struct___queue *t = (void *)task;
	u32 why = row->off_why & ~OFF_THROTTLED;
	u64 all;

	if (!bpf_core_field_exists(t->sched_info.run_delay))
		return;
	all = BPF_CORE_READ(t, sched_info.run_delay) + 1;
	if (row->queued && why != C_WAIT_CPU && all > row->queued) {
		if (why == C_WAIT_CHILD)
			__sync_fetch_and_add(&row->v[C_WAIT_CPU], all - row->queued);
		else
			__sync_fetch_and_add(&row->v[C_WAIT_WOKEN], all - row->queued);
	}
	if (!row->queued && BPF_CORE_READ(t, sched_info.pcount) <= 1)
		__sync_fetch_and_add(&row->v[C_WAIT_CPU], all - 1);
	row->queued = all;
	mark_group(row, ROW_GROUP(C_WAIT_READ));
}

/* How the running thread entered the kernel: the number of the system call, -1 for an exception. */
static __always_inline s64 entered_by(struct task_struct *task)
{
	struct pt_regs *regs;

	if (of_other_table(task))
		return NR_compat;
	if (knows_registers())
		regs = (void *)bpf_task_pt_regs(task);
	else
		regs = (void *)((u64)task->stack + STACK_SIZE - bpf_core_type_size(struct pt_regs));
	return (s64)BPF_CORE_READ(regs, CALL_NUMBER);
}

/*
 * Whether a thread that sleeps does so since its cgroup is frozen: in whatever call it was, which signals end at once then. Who sleeps for
 * a device is not there yet. The freezer of version 1 has a mark of its own before 6.1, and a state of its own from then on.
 */
static __always_inline bool is_frozen(struct task_struct *task, u64 state)
{
	struct task_struct___jobs *t = (void *)task;

	if (task->flags & PF_FROZEN)
		return true;
	return !(state & TASK_UNINTERRUPTIBLE) && bpf_core_field_exists(t->jobctl) &&
	       BPF_CORE_READ(t, jobctl) & JOBCTL_TRAP_FREEZE;
}

/* Whether a thread that sleeps waits for a device, by the kernel's own account. */
static __always_inline bool waits_for_device(struct task_struct *task)
{
	struct task_struct___iowait *t = (void *)task;

	return bpf_core_field_exists(t->in_iowait) && BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait);
}

/* Whether a thread has made processes that nobody has waited for. */
static __always_inline bool has_children(struct task_struct *task)
{
	struct task_struct___children *t = (void *)task;

	return BPF_CORE_READ(t, children.next) != &t->children;
}

/* Why the running thread leaves the processor: a counter. */
static __always_inline u32 why_off(struct task_struct *task, bool preempted)
{
	u64 state;
	bool deep;
	s64 nr;
	u32 why;

	if (bpf_core_field_exists(task->__state))
		state = task->__state;
	else
		state = BPF_CORE_READ((struct task_struct___state *)task, state);
	if (preempted || !state)
		return C_WAIT_CPU;
	/* Stopped by a signal or whoever debugs it, or frozen: no processor would help. */
	if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) || is_frozen(task, state))
		return C_WAIT_OTHER;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return C_WAIT_OTHER;
	deep = (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD);
	nr = entered_by(task);
	if (nr == -1)
		return deep ? C_WAIT_FAULT : C_WAIT_OTHER;
	/* The shell's `wait`, in dash and zsh: until SIGCHLD comes. */
	if (nr == NR_rt_sigsuspend && has_children(task))
		return C_WAIT_CHILD;
	/* They fault for what is missing; what else they wait for (the lock of all that is mapped) is none of the cache's. */
	if (maps_pages(nr))
		return deep && waits_for_device(task) ? C_WAIT_FAULT : C_WAIT_OTHER;
	why = waits_for(nr);
	if ((why == C_WAIT_READ || why == C_WAIT_WRITE) && !deep)
		return nr == NR_io_uring_enter || nr == NR_io_submit ? C_WAIT_COMPLETION : C_WAIT_PEER;
	return why == C_WAIT_CHILD && deep ? why | OFF_VFORK : why;
}

/* The same, but for pauses of those who make pages dirty: in a read and in a fault, too, they wait to write (on_throttle). */
static __always_inline u32 why_off_now(struct row *row, struct task_struct *task, bool preempted)
{
	u32 why = why_off(task, preempted);

	if (!(row->off_why & OFF_THROTTLED))
		return why;
	if (why == C_WAIT_CPU)
		return why | OFF_THROTTLED;
	return why == C_WAIT_READ || why == C_WAIT_FAULT ? C_WAIT_WRITE : why;
}

/*
 * The row of a thread, as it is: it need not be running. One that nobody saw end may have left its own in the same place: `began`.
 */
static __always_inline struct row *row_of(u64 task, u64 began)
{
	struct row *row = row_at(slots[slot_of(task)]);
	u32 *n;

	if (!row || row->task != task) {
		n = bpf_map_lookup_elem(&row_numbers, &task);
		row = n ? row_at(*n) : 0;
	}
	return row && row->began == began ? row : 0;
}

/* `next_task` is `next` as a number. */
static __always_inline void on_switch(bool preempted, struct task_struct *prev, struct task_struct *next,
				      u64 next_task)
{
	struct row *row;
	u64 now = 0;

	if (!ready)
		return;
	if (run_of(prev->tgid)) {
		/* A thread that has exited gets no row any more: nobody would end it. */
		row = own_row(!(prev->flags & PF_EXITING));
		if (row) {
			now = bpf_ktime_get_ns();
			note_queued(row, prev);
			row->off_why = why_off_now(row, prev, preempted);
			row->off_at = now;
		}
	}
	if (run_of(next->tgid)) {
		row = row_of(next_task, next->start_time);
		if (row && row->off_at) {
			u32 why = row->off_why & OFF_WHY;
			u64 ns;

			if (!now)
				now = bpf_ktime_get_ns();
			ns = now - row->off_at;
			row->off_at = 0;
			row->off_sum += ns;
			if (why < C_MAX)
				__sync_fetch_and_add(&row->v[why], ns);
			mark_group(row, ROW_GROUP(C_WAIT_READ));
		}
	}
}

/* A name is looked up that the dentry cache does not have: the file system of this directory is asked. */
static __always_inline void begin_lookup(u64 directory)
{
	struct account a;

	if (!ready || !run_of(bpf_get_current_pid_tgid() >> 32) || !account_open(&a) || !a.row)
		return;
	COUNT(&a, C_LOOKUPS, 1);
	a.row->lookup_at = bpf_ktime_get_ns() - a.row->off_sum;
	a.row->lookup_in = directory;
}

/*
 * The file system has answered for a name. What it waited meanwhile is counted as waiting. Some answers nobody sees (/proc has none for
 * what is not there): then the next one, which may be of a name that is made hours later, is that of another directory.
 */
static __always_inline void end_lookup(struct dentry *name)
{
	struct row *row = own_row(false);
	u64 ns;

	if (!row || !row->lookup_at)
		return;
	ns = bpf_ktime_get_ns() - row->off_sum - row->lookup_at;
	row->lookup_at = 0;
	if ((u64)BPF_CORE_READ(name, d_parent) != row->lookup_in)
		return;
	if ((s64)ns > 0)
		__sync_fetch_and_add(&row->v[C_LOOKUP_NS], ns);
	__sync_fetch_and_add(&row->v[C_LOOKUPS_ENDED], 1);
	mark_group(row, ROW_GROUP(C_LOOKUP_NS));
}

/* A writer is made to wait because too much is dirty; `pause` in ms. */
static __always_inline void on_throttle(s64 pause)
{
	struct account a;

	if (!ready || pause <= 0 || !run_of(bpf_get_current_pid_tgid() >> 32) || !account_open(&a))
		return;
	COUNT(&a, C_THROTTLE_NS, pause * 1000000);
	if (a.row)
		a.row->off_why |= OFF_THROTTLED;
}

static __always_inline void on_fork(struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, tgid = child->tgid;
	struct member m = {}, *old;

	if (tgid == from)
		return;
	m.run = from == monitor_tgid ? spawning : run_of(from);
	m.signal = signal_of(child);
	/* An id can be taken again before the kernel has freed who had it: that one is gone all the same. */
	old = bpf_map_lookup_elem(&followed, &tgid);
	if (old) {
		if (old->signal)
			add_process(old->signal);
		bpf_map_delete_elem(&followed, &tgid);
	}
	if (m.run && bpf_map_update_elem(&followed, &tgid, &m, BPF_ANY))
		__sync_fetch_and_add(&followed_full, 1);
}

/*
 * The last of a process, whose accounts are complete. By now its id may be another's, which has nothing to do with this:
 * on_fork has told them apart.
 */
static __always_inline void on_free(struct task_struct *task)
{
	u32 tgid = task->tgid;
	u64 signal = signal_of(task);
	struct member *m;

	if (!with_follow || task->pid != tgid)
		return;
	m = bpf_map_lookup_elem(&followed, &tgid);
	if (!m || (m->signal && m->signal != signal))
		return;
	add_process(signal);
	bpf_map_delete_elem(&followed, &tgid);
}

/* A thread ends. */
static __always_inline void on_end(void *task)
{
	if (run_of(bpf_get_current_pid_tgid() >> 32))
		add_thread(task);
}

#endif
