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
 * Names that threads were given by others, by the address of their task_struct. They are announced before they are
 * written: a thread that looked at its own name meanwhile would keep the old one. Which is forgotten when the table is
 * full does not matter: a name is needed here until it is written, some instructions later under a lock, and then the
 * thread's own says the same. One that is out of date would matter: see on_rename.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
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

/* What a thread is called, or will be as soon as who renames it has written it. */
static __always_inline void name_of(struct task_struct *task, char *to)
{
	struct name *given = 0;
	u64 key = (u64)task;

	if (names_given)
		given = bpf_map_lookup_elem(&given_names, &key);
	if (given)
		*(struct name *)to = *given;
	else
		read_name(to, (void *)task + bpf_core_field_offset(struct task_struct, comm));
}

static __always_inline bool same_name(const char *a, const char *b)
{
	const struct name *x = (const void *)a, *y = (const void *)b;

	return x->half[0] == y->half[0] && x->half[1] == y->half[1];
}

#endif
