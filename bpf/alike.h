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
	u32 run;
	u32 epoch; /* what is asked for */
	u32 flags;
	u32 table;
	u32 linked; /* whether the file has a name */
	u32 proactive;
	u32 pid; /* last: see look_anew; 0: nothing is known */
	u32 pad;
};

/*
 * Of the last page that went. A row that has a number keeps its key for good: to compare the two takes a tenth of what a look-up takes.
 */
struct blame_last {
	u32 evictor; /* the number of its row, and BLAME_NAMELESS */
	u32 share; /* bill.h; zero: of none, and so below */
	u32 reader;
	u32 pad;
	struct blame_seen seen;
	/* The file, as a number: by what follows. */
	u64 file;
	u64 mapping;
	u64 inode;
	u64 generation;
	u64 dev;
};

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

static __always_inline u64 serial_of_limit(struct scan_control___blame *control)
{
	return can_cast() ? serial_of(word_at(&control->target_mem_cgroup))
			  : serial_of(word_of(&control->target_mem_cgroup));
}

/* Where what a task holds is read by plain loads. Elsewhere it would take longer than to look anew. */
static __always_inline bool can_compare(void)
{
	return knows_running() && knows_registers() &&
	       bpf_core_field_exists(struct mem_cgroup___serial, css.serial_nr) &&
	       bpf_core_field_exists(struct task_struct, ioac.syscw);
}

/*
 * Compares all of it or, where `set`, notes it: one function, so that the two do not differ. False: it is another way.
 * `charged` is what the page was charged to (charged_to). Of a folio without an address its file is asked by the mapping.
 */
static __always_inline bool compare(struct blame_seen *seen, u64 charged, void *folio,
				    struct address_space *mapping, enum folio_from from, bool set)
{
#define WORD(field, value)                                                                                      \
	do {                                                                                                    \
		u64 __value = (value);                                                                          \
		if (set)                                                                                        \
			*(volatile typeof(seen->field) *)&seen->field = __value;                                \
		else if (seen->field != (typeof(seen->field))__value)                                           \
			return false;                                                                           \
	} while (0)

	struct task_struct *task = bpf_get_current_task_btf();
	u32 flags = task->flags & (PF_KSWAPD | PF_MEMALLOC | PF_KTHREAD | PF_IO_WORKER);
	struct scan_control___blame *control;
	struct task_struct *leader;
	struct pt_regs *regs;
	u64 state = 0, call, argument = 0;
	bool advised = false;
	u32 table;

	WORD(began, task->start_time);
	WORD(run, blame_run);
	WORD(epoch, asked_epoch);
	WORD(flags, flags);
	WORD(owner, serial_of(group_charged(charged)));
	if (flags & PF_KSWAPD)
		goto out;
	leader = task->group_leader;
	WORD(name[0], *(u64 *)leader->comm);
	WORD(name[1], *(u64 *)(leader->comm + 8));
	WORD(by, running_cgroup());
	if (flags & PF_MEMALLOC) {
		state = (u64)task->reclaim_state;
		WORD(state, state);
		if (state && bpf_core_field_exists(struct scan_control___blame, reclaim_state)) {
			control = control_of(state);
			WORD(limit, serial_of_limit(control));
			WORD(proactive, is_proactive(control));
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
	WORD(pid, task->pid);
	return true;
#undef WORD
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
	/* Names that others gave are in a table, which is not compared. */
	if (can_compare() && !names_given)
		compare(&last->seen, charged, 0, mapping, ADDRESS, true);
	look_at_evictor(&key, charged, mapping);
	/* Rows for everybody have no key that is theirs. Whoever had no room this time may have some the next. */
	number = number_of_evictor(&key, number < BLAME_HOWS ? 0 : number);
	if (number < BLAME_HOWS)
		last->seen.pid = 0;
	last->evictor = number | (key.how == BLAME_DELETED ? BLAME_NAMELESS : 0);
	RETURN_NOTHING();
}

/* The number of the row of whoever takes a folio out, and BLAME_NAMELESS. */
static __always_inline u32 evictor_of(struct blame_last *last, void *folio, struct address_space *mapping,
				      enum folio_from from)
{
	u64 charged = charged_to(folio, from);
	u32 number = last->evictor; /* before all else: see look_anew */

	if (!can_compare()) {
		look_anew(last, mapping, charged);
		barrier(); /* else both calls become one, and each test before them stays */
		return last->evictor;
	}
	if (likely(!names_given && compare(&last->seen, charged, folio, mapping, from, false)))
		return number;
	look_anew(last, mapping, charged);
	return last->evictor;
}

#endif
