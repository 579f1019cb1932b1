/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which row a thread has: found, made, made anew where it is called or belongs to somebody otherwise than before, and ended. Nearly every
 * program may be the first that meets a thread.
 */
#ifndef CACHETOP_OWN_H
#define CACHETOP_OWN_H

#include "account.h"

/* What was stored before is seen by all before anything is loaded after. */
static __always_inline void settle_stores(struct row *row)
{
	__sync_fetch_and_add(&row->scratch, 1);
}

/*
 * Who the row's thread is. Asked after the row can be found and says whose it is: who changes any of it does so first
 * and marks the row then (mark_row), so that the mark comes after, or the change before this.
 */
static __noinline void identify(struct row *row)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader, *parent;

	if (with_plain)
		row->plain_task = (u64)task;
	row->task = (u64)task;
	settle_stores(row);
	row->uid = running_user();
	row->cgroup = cgroup_of(task);
	row->run = run_of(row->tgid);
	leader = BPF_CORE_READ(task, group_leader);
	name_of(task, row->comm);
	name_of(leader, row->process);
	parent = BPF_CORE_READ(leader, real_parent, group_leader);
	row->begun = BPF_CORE_READ(leader, start_time);
	row->parent = BPF_CORE_READ(parent, tgid);
	row->parent_begun = BPF_CORE_READ(parent, start_time);
	name_of(parent, row->parent_name);
	row->wanted = is_wanted(task, row->tgid, row->process);
	if (with_files)
		row->owner = owner_of(row);
	RETURN_NOTHING();
}

/*
 * The number of a free row. Where only some threads are requested, `free_rows` are kept for these, and `spare_rows` are
 * everybody's.
 */
static __always_inline int take_row(u32 *n, bool wanted)
{
	int err = -ENOENT;

	if (wanted)
		err = pop_number(&free_rows, n);
	if (!err)
		return 0;
	if (!only_some)
		count_one(err == -ENOENT ? C_LOST_ROWS : C_LOST_BUSY);
	err = pop_number(&spare_rows, n);
	if (err && only_some && wanted)
		count_one(err == -ENOENT ? C_LOST_ROWS : C_LOST_BUSY);
	return err;
}

/* What the thread is in the middle of, taken over from the row that it had until now; nothing, if that is null (thread.h). */
static __always_inline void go_on(struct row *row, struct row *old);

/*
 * Gives the running thread a row. Null where there is no room. `old` is the one that it had until now, if it may be in
 * the middle of something: that goes on in the new one.
 */
static __noinline struct row *make_row(struct row *old)
{
	u64 key = bpf_get_current_task(), id = bpf_get_current_pid_tgid();
	struct row *row;
	bool wanted;
	int err;
	u32 n;

	if (is_self(id >> 32))
		return 0;
	wanted = !only_some || is_asked_for(id >> 32);
	err = take_row(&n, wanted);
	row = err ? 0 : row_at(n);
	if (!row) {
		/* Of what nobody asks for nothing is lost. */
		if (wanted)
			count_one(err == -ENOENT ? C_LOST_FRAMES : C_LOST_BUSY);
		return 0;
	}
	row->tgid = id >> 32;
	row->tid = id;
	row->number = n;
	row->began = running_since();
	row->file = NO_FILE;
	go_on(row, old);
	row->sketch = 0;
	row->made++;
	row->born = bpf_ktime_get_ns();
	row->state = ROW_LIVE;
	tell_taken(&rows_taken, n);
	if (note(&row_numbers, &key, &n)) {
		count_one(C_LOST_BUSY);
		if (with_plain && row->plain_bytes)
			settle_plain(row, false);
		leave_plain_fault(row, true);
		row->state = ROW_ENDED;
		mark_group(row, 0);
		return 0;
	}
	identify(row);
	return row;
}

/* User space reads the row once more and frees it. Nobody but its thread does this, or for it when it has gone. */
static __always_inline void end_this_row(struct row *row)
{
	row->task = 0;
	barrier();
	row->state = ROW_ENDED;
	mark_group(row, 0);
}

/*
 * The thread is no more what its row says. By the thread itself, or where it cannot run. `gone`: it is not the running one, whose
 * requests would be taken for its own.
 */
static __always_inline void end_row_of(u64 task, bool gone)
{
	u32 *n = bpf_map_lookup_elem(&row_numbers, &task);
	struct row *row;

	if (!n)
		return;
	row = row_at(*n);
	forget(&row_numbers, &task);
	if (!row)
		return;
	/* Nor is it if that thread's end was not seen, and the running one has begun in the same place. */
	if (with_plain || with_plain_faults)
		gone = gone || row->began != running_since();
	if (with_plain && row->plain_bytes)
		settle_plain(row, gone);
	leave_plain_fault(row, !gone);
	end_this_row(row);
}

static __always_inline void end_row(u64 task)
{
	end_row_of(task, task != bpf_get_current_task());
}

/*
 * Somebody else changed what the row of a thread says. The thread may be counting in it, so the row stays its own: it is
 * told to look again, at its next event. If it has ended the row meanwhile, and the row is another's by now, that one
 * looks for nothing.
 */
static __always_inline void mark_row(u64 task)
{
	u32 *n = bpf_map_lookup_elem(&row_numbers, &task);
	struct row *row = n ? row_at(*n) : 0;

	if (row)
		row->task = 0;
}

/* New rows that a thread gets in a second for being called, or belonging to somebody, otherwise than before. */
#define CHANGES 16
#define CHANGES_NS 1000000000ULL
#define CHANGING 1024

/* The last thread that changed, and how often since when. Threads that share a place forget one another. */
struct changing {
	u64 thread; /* process and thread: where its task_struct is another one soon begins */
	u64 since;
	u64 times;
} changing[CHANGING];

/*
 * Whether the running thread changes so often that it would take all rows from everybody: it keeps the one that it has, under
 * what it was, until the second is over.
 */
static __noinline bool changes_too_often(void)
{
	u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	struct changing *c = &changing[thread & (CHANGING - 1)];

	if (c->thread != thread || now - c->since > CHANGES_NS) {
		c->thread = thread;
		c->since = now;
		c->times = 0;
	}
	return ++c->times > CHANGES;
}

/* The running thread's row has been marked: another one, if anything of what it says has changed. */
static __noinline struct row *renew_row(struct row *row)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct row *next;
	char name[NAME] __attribute__((aligned(8)));

	row->task = (u64)task;
	settle_stores(row);
	name_of(task, name);
	if (same_name(name, row->comm) && row->uid == running_user() && row->cgroup == cgroup_of(task))
		return row;
	if (changes_too_often()) {
		row->task = 0;
		return row;
	}
	next = make_row(row);
	if (next)
		end_this_row(row);
	else
		end_row((u64)task);
	return next;
}

/* Stands apart: what it reads by takes room on the stack, of which 6.1 has none to spare below a read. */
static __noinline bool is_of_other(struct row *row)
{
	return row->uid != running_user();
}

/*
 * Where users are asked for, a thread that has become another one's has no row: not everywhere is there a hook that says so, and it would
 * have the row of who it was.
 */
static __always_inline bool has_other_user(struct row *row)
{
	return only_users && is_of_other(row);
}

/* The row of a thread without a slot, or one that has been marked. */
static __always_inline struct row *find_row(bool create)
{
	u64 task = bpf_get_current_task();
	u32 *slot = &slots[slot_of(task)], *n = bpf_map_lookup_elem(&row_numbers, &task);
	struct row *row, *other;

	if (!n)
		return create ? make_row(0) : 0;
	row = row_at(*n);
	if (row && row->began != running_since()) {
		/* Its thread is gone, which nobody saw: somebody else begins in the same place. */
		end_row_of(task, true);
		return create ? make_row(0) : 0;
	}
	if (row && (row->task != task || has_other_user(row)))
		return create ? renew_row(row) : row;
	other = row_at(*slot);
	/* Nobody has it, or one that has it no more. */
	if (!other || !other->task || &slots[slot_of(other->task)] != slot)
		*slot = *n;
	return row;
}

static __noinline struct row *search_row(void)
{
	return find_row(false);
}

#define NO_ROW 0xffffffff /* more than any table has */

/*
 * Its number, and a row is made where it has none; NO_ROW: there is no room. Global: verified once in each program. With all that makes
 * a row it is more than most programs are, and some ask in several places.
 */
__noinline u32 search_or_make_row(void)
{
	struct row *row = find_row(true);

	return row ? row->number : NO_ROW;
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

/* The row of a thread whose task_struct is at hand, which saves a call. Null: it is to be searched for. */
static __always_inline struct row *row_at_hand(struct task_struct *task)
{
	struct row *row = row_at(slots[slot_of(low_half(task))]);

	if (!row || row->task != (u64)task || row->began != task->start_time || has_other_user(row))
		return 0;
	return row;
}

/*
 * The same before 5.11. Its beginning, which would take a call, is not asked: where sched_process_fork loses nothing, it has ended the
 * row of whoever was in this place.
 */
static __always_inline struct row *row_by_address(u64 task)
{
	struct row *row = row_at(slots[slot_of(task)]);

	return row && row->task == task && !has_other_user(row) ? row : 0;
}

/* The running thread's row: null if it has none and none was requested, if it is the monitor, or for want of room. */
static __always_inline struct row *own_row(bool create)
{
	struct row *row = knows_running() ? row_at_hand(bpf_get_current_task_btf())
					  : row_by_address(bpf_get_current_task());

	if (unlikely(!row))
		return create ? row_at(search_or_make_row()) : search_row();
	return row;
}

/* The same, and one is made where it has none. */
static __always_inline struct row *own_row_at_hand(struct task_struct *task)
{
	struct row *row = row_at_hand(task);

	return likely(row) ? row : row_at(search_or_make_row());
}

/* The row of the running thread, where it has one, else nobody's. False: the event is the monitor's own and does not count. */
static __always_inline bool account_in(struct account *a, struct row *row)
{
	a->nobody = 0;
	a->row = row;
	if (row)
		return true;
	/* Why there is none has been counted. */
	return !is_self(bpf_get_current_pid_tgid() >> 32) && account_nobody(a);
}

/* The same where its row is not known yet. */
static __always_inline bool account_open(struct account *a)
{
	return account_in(a, own_row(true));
}

#endif
