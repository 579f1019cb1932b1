/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Changes of tables, tried again where they are refused for a moment. */
#ifndef CACHETOP_TABLE_H
#define CACHETOP_TABLE_H

#include "core.h"

#define ENOENT 2
#define E2BIG 7

/*
 * The kernel may refuse a table that has room: where its lock cannot be had in time, or is held below us on this
 * processor (-EBUSY; from 6.15 on -EDEADLK and -ETIMEDOUT, too, in guests until 82f3b142c99c also without a reason). The
 * first passes. Until 6.4 these functions return an int, whose upper half is left as it is.
 */
static __always_inline int pop_number(void *stack, u32 *n)
{
	int err = bpf_map_pop_elem(stack, n);

	if (err && err != -ENOENT)
		err = bpf_map_pop_elem(stack, n);
	if (err && err != -ENOENT)
		err = bpf_map_pop_elem(stack, n);
	return err;
}

static __always_inline int note(void *table, const void *key, const void *value)
{
	int err = bpf_map_update_elem(table, key, value, BPF_ANY);

	if (err && err != -E2BIG)
		err = bpf_map_update_elem(table, key, value, BPF_ANY);
	if (err && err != -E2BIG)
		err = bpf_map_update_elem(table, key, value, BPF_ANY);
	return err;
}

static __always_inline int forget(void *table, const void *key)
{
	int err = bpf_map_delete_elem(table, key);

	if (err && err != -ENOENT)
		err = bpf_map_delete_elem(table, key);
	if (err && err != -ENOENT)
		err = bpf_map_delete_elem(table, key);
	return err;
}

static __always_inline int push_number(void *stack, u32 *n)
{
	int err = bpf_map_push_elem(stack, n, 0);

	if (err && err != -E2BIG)
		err = bpf_map_push_elem(stack, n, 0);
	if (err && err != -E2BIG)
		err = bpf_map_push_elem(stack, n, 0);
	return err;
}

#endif
