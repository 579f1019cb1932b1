/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whether a page goes in the same way as the last one of this processor. Pages go many at a time, and to find out why and whose takes
 * longer than to see that nothing it depends on has changed. All of that is compared, or changes asked_epoch. Part of blame.h.
 */
#ifndef CACHETOP_ALIKE_H
#define CACHETOP_ALIKE_H

#include "evictor.h"

/* What the row of an evictor depends on, as it is in the kernel. */
struct blame_seen {
	u64 began; /* of the thread; with its number it is no other's */
	u64 owner; /* these are serial numbers of cgroups, which no later one has */
	u64 limit;
	u64 state;
	u64 by;
	u64 name[2]; /* of the process */
	u64 call; /* the system call, and the one argument of it that is looked at */
	u64 argument;
	u64 writes; /* of the thread so far: what an open file is in one call it may not be in the next */
	u64 asked;
	u64 names; /* how often others gave a name: their table is not compared */
	u32 flags;
	u32 table;
	u32 linked; /* whether the file has a name */
	u32 user; /* where only some users are asked for */
	u32 pid; /* last: see look_anew; 0: nothing is known */
	u64 proactive;
};

/*
 * What stands for some of that within one tick of the clock: addresses of what the kernel frees only after a grace period of RCU, which
 * no tick is long enough for. So each is still what it was when all was compared.
 */
struct blame_tick {
	u64 jiffies; /* of the last time that all was compared */
	u64 task;
	u64 charged;
	u64 groups; /* css_set of the thread */
	u64 target; /* whose limit */
};

/*
 * Of the last page that went. A row that has a number keeps its key for good: to compare the two takes a tenth of what a look-up takes.
 */
struct blame_last {
	u32 evictor; /* the number of its row, and BLAME_NAMELESS */
	u32 share; /* bill.h; zero: of none, and so below */
	u32 reader;
	u32 place; /* of `who` in its set (evicted.h) */
	struct blame_seen seen;
	struct blame_tick tick;
	/* The file, as a number: by what follows. */
	u64 file;
	u64 mapping;
	u64 inode;
	u64 generation;
	u64 dev;
	u64 looked; /* in which tick all of that was compared: of no other one is there a `block` */
	/* The block of that file whose entry is `who`, and which is billed to `share`; NO_BLOCK: something of it is another's. */
	u64 block;
	u64 who;
	u64 used_again; /* not 0: its inode may become another file's where it is */
};

#define NO_BLOCK (~0ULL)
#define USED_AGAIN (1ULL << 62) /* in `block` */

#define BLAME_NAMELESS 0x80000000U /* of a file that has been deleted */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct blame_last);
} blame_last SEC(".maps");

struct cgroup_subsys_state___serial {
	u64 serial_nr;
} __attribute__((preserve_access_index));
struct mem_cgroup___serial {
	struct cgroup_subsys_state___serial css;
} __attribute__((preserve_access_index));

/* By plain loads where any address can be read by them. */
static __always_inline u64 serial_of(u64 group)
{
	if (!group)
		return 0;
	return can_cast() ? bpf_core_cast((void *)group, struct mem_cgroup___serial)->css.serial_nr
			  : word_of(&((struct mem_cgroup___serial *)group)->css.serial_nr);
}

/* Where what a task holds is read by plain loads. Elsewhere it would take longer than to look anew. */
static __always_inline bool can_compare(void)
{
	return knows_registers() && bpf_core_field_exists(struct task_struct, ioac.syscw) &&
	       bpf_core_field_exists(struct scan_control___blame, reclaim_state) &&
	       bpf_core_field_exists(struct mem_cgroup___serial, css.serial_nr);
}

enum compare_how {
	COMPARE, /* all of it, and notes what stands for some of it from now on */
	COMPARE_QUICKLY, /* by what stands for it in this tick */
	NOTE_ALL,
};

/*
 * One function, so that what is noted and what is compared do not differ. False: it is another way. `charged` is what the page was
 * charged to (charged_to). Of a folio without an address its file is asked by the mapping.
 */
static __always_inline bool compare(struct blame_last *last, struct task_struct *task, u64 charged, void *folio,
				    struct address_space *mapping, enum folio_from from, enum compare_how how)
{
#define NOTE(field, value) *(volatile typeof(field) *)&field = (value)
#define WORD(field, value)                                                                                      \
	do {                                                                                                    \
		u64 __value = (value);                                                                          \
		if (how == NOTE_ALL)                                                                            \
			NOTE(seen->field, __value);                                                             \
		else if (seen->field != (typeof(seen->field))__value)                                           \
			return false;                                                                           \
	} while (0)
/* The address is read first: should it change, the next page is looked at anew. */
#define STANDS_FOR(short_field, address, field, value)                                                          \
	do {                                                                                                    \
		u64 __address = (address);                                                                      \
		if (how == COMPARE_QUICKLY) {                                                                   \
			if (tick->short_field != __address)                                                     \
				return false;                                                                   \
		} else {                                                                                        \
			NOTE(tick->short_field, __address);                                                     \
			barrier();                                                                              \
			WORD(field, value);                                                                     \
		}                                                                                               \
	} while (0)

	u32 flags = task->flags & (PF_KSWAPD | PF_MEMALLOC | PF_KTHREAD | PF_IO_WORKER);
	struct blame_seen *seen = &last->seen;
	struct blame_tick *tick = &last->tick;
	u64 state = 0, call, argument = 0, now = bpf_jiffies64();
	struct task_struct *leader;
	struct pt_regs *regs;
	struct limit limit;
	bool advised = false;
	u32 table;

	if (how == COMPARE_QUICKLY) {
		if (tick->jiffies != now)
			return false;
	} else {
		NOTE(tick->jiffies, 0);
		last->block = NO_BLOCK; /* so that its file is compared, too, in each tick */
	}
	STANDS_FOR(task, (u64)task, began, task->start_time);
	WORD(asked, *(volatile u64 *)&asking);
	WORD(names, names_given);
	WORD(flags, flags);
	STANDS_FOR(charged, charged, owner, serial_of(group_charged(charged)));
	if (flags & PF_KSWAPD)
		goto out;
	leader = task->group_leader;
	WORD(name[0], *(u64 *)leader->comm);
	WORD(name[1], *(u64 *)(leader->comm + 8));
	STANDS_FOR(groups, (u64)task->cgroups, by, running_cgroup());
	if (only_users)
		WORD(user, running_user());
	if (flags & PF_MEMALLOC) {
		state = (u64)task->reclaim_state;
		WORD(state, state);
		if (state) {
			limit = limit_of(control_of(state));
			STANDS_FOR(target, limit.target, limit, serial_of(limit.target));
			WORD(proactive, limit.proactive);
		}
	}
	if (!state && !(flags & (PF_KTHREAD | PF_IO_WORKER))) {
		regs = (void *)bpf_task_pt_regs(task);
		table = of_other_table(task);
		call = regs->CALL_NUMBER;
		WORD(table, table);
		WORD(call, call);
		if (call == NR_fadvise64 || call == NR_process_madvise) {
			argument = (u32)regs->CALL_ARG3;
			WORD(argument, argument);
			advised = call == NR_fadvise64 && argument == POSIX_FADV_DONTNEED && !table;
		} else if (call == NR_madvise) {
			WORD(argument, (u32)regs->CALL_ARG2);
		} else if (call == NR_write || call == NR_pwrite64 || call == NR_writev) {
			WORD(argument, (u32)regs->CALL_ARG0);
			WORD(writes, task->ioac.syscw);
		}
	}
	/* Where it matters (why_removed). */
	if (!(flags & PF_MEMALLOC) && !advised)
		WORD(linked, from == ARGUMENT_OF_BTF ? !!mapping_of_argument(folio)->host->i_nlink
						     : !!links_of(mapping));
out:
	if (how != COMPARE_QUICKLY) {
		WORD(pid, task->pid);
		NOTE(tick->jiffies, now);
	}
	return true;
#undef STANDS_FOR
#undef WORD
#undef NOTE
}

/* Apart from what calls others: the kernel allows functions that stand on each other 512 bytes in all. */
static __noinline u32 compare_all(struct blame_last *last, u64 charged, struct address_space *mapping)
{
	u32 same = compare(last, bpf_get_current_task_btf(), charged, 0, mapping, ADDRESS, COMPARE);

	barrier();
	return same;
}

static __noinline void note_all(struct blame_last *last, u64 charged, struct address_space *mapping)
{
	compare(last, bpf_get_current_task_btf(), charged, 0, mapping, ADDRESS, NOTE_ALL);
	RETURN_NOTHING();
}

/*
 * Another way than the last one's. What is compared is noted before it is looked at, so that of what changes meanwhile the next page takes
 * notice. Nothing else takes a page out on this processor in between: with interrupts off, or where the event is the classic one, which
 * is not run twice at a time.
 */
static __noinline void look_anew(struct blame_last *last, struct address_space *mapping, u64 charged)
{
	struct blame_key key = {};
	u32 number = last->evictor & ~BLAME_NAMELESS;

	*(volatile u32 *)&last->seen.pid = 0;
	*(volatile u64 *)&last->tick.jiffies = 0;
	last->block = NO_BLOCK;
	if (can_compare())
		note_all(last, charged, mapping);
	look_at_evictor(&key, charged, mapping);
	/* Rows for everybody have no key that is theirs. Whoever had no room this time may have some the next. */
	number = number_of_evictor(&key, number < BLAME_HOWS ? 0 : number);
	if (number < BLAME_HOWS) {
		last->seen.pid = 0;
		last->tick.jiffies = 0;
	}
	last->evictor = number | (key.how == BLAME_DELETED ? BLAME_NAMELESS : 0);
	RETURN_NOTHING();
}

/* Whether a folio goes in the same way as the last one, as far as this can be told in short. */
static __always_inline bool goes_alike(struct blame_last *last, struct task_struct *task, u64 charged,
				       void *folio, struct address_space *mapping, enum folio_from from)
{
	return compare(last, task, charged, folio, mapping, from, COMPARE_QUICKLY);
}

/* Where it cannot: the number of the row of whoever takes it out, and BLAME_NAMELESS. */
static __always_inline u32 evictor_of(struct blame_last *last, u64 charged, struct address_space *mapping)
{
	u32 number = last->evictor; /* before all else: see look_anew */

	if (can_compare() && compare_all(last, charged, mapping))
		return number;
	look_anew(last, mapping, charged);
	barrier();
	return last->evictor;
}

#endif
