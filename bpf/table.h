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

/*
 * The number of the row of a key, with which each row begins: of the one that is there, or a free one. Zero, which is the number of none
 * that is handed out: there is no room.
 */
static __always_inline u32 find_or_take(void *numbers, void *rows, void *free, const void *key, u32 size)
{
	u32 *known = bpf_map_lookup_elem(numbers, key), n = 0;
	void *row;

	if (known)
		return *known;
	if (pop_number(free, &n))
		return 0;
	row = bpf_map_lookup_elem(rows, &n);
	if (!row)
		return 0;
	__builtin_memcpy(row, key, size);
	if (!bpf_map_update_elem(numbers, key, &n, BPF_NOEXIST))
		return n;
	/* Another processor was faster. The row stays empty, and waits for the next one. */
	push_number(free, &n);
	known = bpf_map_lookup_elem(numbers, key);
	return known ? *known : 0;
}

#endif
