/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the monitor does to tables while events are counted, done for it by a program that it runs. bpf(2) would mark the
 * processor while it changes or copies something, so that no probe runs inside: where the kernel is preemptible, the monitor can
 * be put aside there, and whatever happens on that processor meanwhile is passed by. A program has no such mark.
 */
#ifndef CACHETOP_CHORES_H
#define CACHETOP_CHORES_H

#include "file.h"
#include "latency.h"
#include "ledger.h"

/* One element. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct chores);
} chores SEC(".maps");

static __always_inline struct chores *the_chores(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&chores, &zero);
}

static __always_inline int copy_name(struct chores *c, u32 n)
{
	struct file_name *name = bpf_map_lookup_elem(&file_names, &n);

	return name ? bpf_probe_read_kernel(&c->name, sizeof(c->name), name) : -ENOENT;
}

static __always_inline int copy_latency(struct chores *c, u32 n, u64 begin_anew)
{
	struct histograms *h = bpf_map_lookup_elem(&histograms, &n);

	if (!h)
		return -ENOENT;
	if (begin_anew) {
		__builtin_memset(h, 0, sizeof(*h));
		return 0;
	}
	return bpf_probe_read_kernel(&c->latency, sizeof(c->latency), h);
}

/* As forget_file, of one that rests: by then another row may have the same key. */
static __always_inline u64 end_file(u32 n)
{
	struct file_row *f = file_at(n);
	struct file_key key;
	u32 *known;

	if (!f || *(volatile u32 *)&f->touched)
		return 0;
	key.mapping = f->mapping;
	key.owner = f->owner;
	f->mapping = 0;
	f->state = FILE_ENDED;
	known = bpf_map_lookup_elem(&file_numbers, &key);
	if (known && *known == n)
		forget(&file_numbers, &key);
	return 1;
}

/*
 * Takes a word out of the ledger if no page is marked in it. A processor that comes second shows a word with the key of the first one's
 * for a moment: only that which the table names may go.
 */
static __always_inline u64 take_word(u32 n)
{
	struct ledger_word *word = ledger_word_at(n);
	struct ledger_key key;
	u32 *known;

	if (!word || *(volatile u64 *)&word->bits)
		return 0;
	key = word->key;
	known = key.mapping ? bpf_map_lookup_elem(&ledger, &key) : 0;
	if (!known || *known != n || bpf_map_delete_elem(&ledger, &key))
		return 0;
	*(volatile u64 *)&word->key.mapping = 0;
	return 1;
}

/* Global: verified once, not for each round of the loop. Not zero: refused for a moment. */
__noinline int do_chore(u32 kind, u32 i)
{
	struct chores *c = the_chores();
	u32 n;

	if (!c || i >= CHORES)
		return -ENOENT;
	n = c->items[i].a;
	switch (kind) {
	case CHORE_FREE_ROWS:
		return push_number(&free_rows, &n);
	case CHORE_SPARE_ROWS:
		return push_number(&spare_rows, &n);
	case CHORE_FREE_FILES:
		return push_number(&free_files, &n);
	case CHORE_FREE_WORDS:
		return push_number(&ledger_free, &n);
	case CHORE_END_FILES:
		c->items[i].b = end_file(n);
		return 0;
	case CHORE_TAKE_WORDS:
		c->items[i].b = take_word(n);
		return 0;
	case CHORE_COPY_NAME:
		return copy_name(c, n);
	case CHORE_COPY_LATENCY:
		return copy_latency(c, n, c->items[i].b);
	case CHORE_RUN_OF:
		c->items[i].b = run_of(n);
		return 0;
	}
	return -ENOENT;
}

static __always_inline void do_chores(void)
{
	struct chores *c = the_chores();
	u32 kind, count, i;

	if (!c)
		return;
	kind = c->kind;
	count = c->count;
	c->done = 0;
	for (i = 0; i < CHORES; i++) {
		if (i >= count || do_chore(kind, i))
			break;
		c->done = i + 1;
	}
}

#endif
