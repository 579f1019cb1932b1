/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Names of threads: one form, and those that others give. */
#ifndef CACHETOP_NAME_H
#define CACHETOP_NAME_H

#include "core.h"

#define NAME 16 /* TASK_COMM_LEN */

/* A name of a thread, without anything behind its end. */
struct name {
	u64 half[NAME / 8];
};

/*
 * Names that threads were given by others, by the thread's id. They are announced before they are written: a thread that
 * looked at its own name meanwhile would keep the old one. Which is forgotten when the table is full does not matter: a
 * name is needed here until it is written, some instructions later, and then the thread's own says the same. One that is
 * out of date would matter: see on_rename.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct name);
} given_names SEC(".maps");

/* Whether there was ever one: mostly not, and then nobody looks. */
volatile u64 names_given = 0;

/* The one form of a name: what is compared are all its bytes, and a row has had other owners before. */
static __always_inline void read_name(char *to, const void *from)
{
	struct name *name = (void *)to;

	name->half[0] = name->half[1] = 0;
	bpf_probe_read_kernel_str(to, NAME, from);
}

/* The same of a name that is there as a whole (`comm` of a task), by plain loads. */
static __always_inline void load_name(char *to, const void *from)
{
	const u64 ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
	struct name *name = (void *)to;
	u64 first = word_at(from), second = word_at(from + 8), end = (first - ones) & ~first & tops;

	/* The lowest bit of `end` is the top one of the first byte that is zero: what lies above goes. */
	if (end) {
		name->half[0] = first & (((end & -end) >> 7) - 1);
		name->half[1] = 0;
		return;
	}
	second &= ~0ULL >> 8;
	end = (second - ones) & ~second & tops;
	name->half[0] = first;
	name->half[1] = second & (((end & -end) >> 7) - 1);
}

static __always_inline u32 id_of(struct task_struct *task)
{
	return word_of((void *)task + bpf_core_field_offset(struct task_struct, pid));
}

/*
 * What a thread is called, or will be as soon as who renames it has written it. No call of another function may be below this one: of the
 * eight that may stand on each other it is the last (is_asked_for).
 */
static __noinline void name_of(struct task_struct *task, char *to)
{
	struct name *given = 0;
	u32 id;

	if (names_given) {
		id = id_of(task);
		given = bpf_map_lookup_elem(&given_names, &id);
	}
	if (given)
		*(struct name *)to = *given;
	else if (can_cast())
		load_name(to, (void *)task + bpf_core_field_offset(struct task_struct, comm));
	else
		read_name(to, (void *)task + bpf_core_field_offset(struct task_struct, comm));
	RETURN_NOTHING();
}

/* What the process of the running thread is called. */
static __always_inline void name_of_process(char *to)
{
	if (knows_running())
		name_of(bpf_get_current_task_btf()->group_leader, to);
	else
		name_of(BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader), to);
}

static __always_inline bool same_name(const char *a, const char *b)
{
	const struct name *x = (const void *)a, *y = (const void *)b;

	return x->half[0] == y->half[0] && x->half[1] == y->half[1];
}

#endif
