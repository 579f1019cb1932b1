/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who pushed whose pages out of the cache, and which of them came back (`cachestat --blame`). Programs of their own, on
 * the events that others count: where nobody asks they are not loaded, and the others are what they were.
 */
#ifndef CACHETOP_BLAME_H
#define CACHETOP_BLAME_H

#include "evictor.h"
#include "flight.h"

/*
 * Who took a page out, by a hash of its file and index: 48 bits of it, whether it has come back, and one more than the
 * number of the row. Two processors that write to one set at a time may lose an entry; so may a set that is full.
 */
#define BLAME_WAYS 8
#define BLAME_BACK 0x8000ULL
#define BLAME_NUMBER 0x7fffULL

struct blame_set {
	u64 page[BLAME_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct blame_set);
} blame_pages SEC(".maps");

/* One less than the number of sets, a power of two. Set before load. */
const volatile u32 blame_mask = 0;

volatile u64 blame_forgotten = 0; /* pages that others took the place of before they came back */
volatile u64 blame_strangers = 0; /* pages that the kernel says were evicted, not known by whom */

#include "bill.h"

#define BLAME_TAG(hash) ((hash) & ~(BLAME_BACK | BLAME_NUMBER))

static __always_inline struct blame_set *set_of(u64 hash)
{
	u32 n = hash & blame_mask;

	return bpf_map_lookup_elem(&blame_pages, &n);
}

/* A page leaves, and is remembered. Global, as are those below: verified once. */
__noinline int blame_note(u64 hash, u32 number)
{
	struct blame_set *set = set_of(hash);
	u64 page, now = BLAME_TAG(hash) | (number + 1);
	u32 i;

	if (!set)
		return 0;
	/* Mostly it has been here before: what goes goes again. */
	for (i = 0; i < BLAME_WAYS; i++) {
		page = set->page[i];
		if (BLAME_TAG(page) == BLAME_TAG(hash) && page) {
			set->page[i] = now;
			return 0;
		}
	}
	for (i = 0; i < BLAME_WAYS; i++) {
		page = set->page[i];
		if (!page || page & BLAME_BACK) {
			set->page[i] = now;
			return 0;
		}
	}
	__sync_fetch_and_add(&blame_forgotten, 1);
	set->page[bpf_get_prandom_u32() & (BLAME_WAYS - 1)] = now;
	return 0;
}

enum blame_step {
	BLAME_GOES,
	BLAME_COMES,
	BLAME_COMES_AGAIN, /* brought in by the run that lasts, or by what was asked for */
	BLAME_REFAULTS,
	BLAME_WAITS,
};

/*
 * A page comes: whoever took it out has this one to answer for. One more than the number of its row, 0 where this is not
 * known, or it has come before.
 */
__noinline int blame_find(u64 hash, u32 step)
{
	struct blame_set *set = set_of(hash);
	struct blame_row *row;
	u32 i, n;

	for (i = 0; set && i < BLAME_WAYS; i++) {
		u64 page = set->page[i];

		if (!page || BLAME_TAG(page) != BLAME_TAG(hash))
			continue;
		if (step == BLAME_WAITS)
			return page & BLAME_BACK ? page & BLAME_NUMBER : 0;
		if (step != BLAME_REFAULTS && page & BLAME_BACK)
			return 0;
		n = (page & BLAME_NUMBER) - 1;
		row = bpf_map_lookup_elem(&blame_rows, &n);
		if (!row)
			break;
		if (step != BLAME_REFAULTS) {
			set->page[i] = page | BLAME_BACK;
			__sync_fetch_and_add(&row->back, 1);
			if (step == BLAME_COMES_AGAIN)
				__sync_fetch_and_add(&row->again, 1);
		} else {
			__sync_fetch_and_add(&row->refaulted, 1);
		}
		return n + 1;
	}
	if (step == BLAME_REFAULTS)
		__sync_fetch_and_add(&blame_strangers, 1);
	return 0;
}

/* Two functions of one another's steps: 1024 pages, twice what the largest folio of the cache has. */
__noinline int blame_few(u64 file, u64 first, u64 last, u64 what)
{
	u32 i, whose;

	for (i = 0; i < 32 && first <= last; i++, first++) {
		if ((u32)what == BLAME_GOES) {
			blame_note(hash_of_page(file, first), what >> 32);
			continue;
		}
		whose = blame_find(hash_of_page(file, first), what);
		/* Page by page: up to 6.1 the verifier follows each length that a run of pages may have, and gives up. */
		if (whose)
			bill_pages(file, whose - 1, 1, (u32)what == BLAME_REFAULTS);
	}
	return 0;
}

__noinline int blame_all(u64 file, u64 first, u64 last, u64 what)
{
	u32 i;

	for (i = 0; i < 32 && first <= last; i++, first += 32)
		blame_few(file, first, first + 31 < last ? first + 31 : last, what);
	return 0;
}

/*
 * A file as a number that it keeps when its inode leaves memory and comes again, and that no later file has. In btrfs
 * snapshots have the same numbers: there it is the mapping, as in block devices.
 */
struct numbered {
	u64 inode, generation, dev, magic;
	umode_t mode;
};

static __always_inline u64 as_number(const struct numbered *f, u64 mapping)
{
	const u64 prime = 0x9e3779b97f4a7c15ULL;
	u64 n;

	if (f->magic == BTRFS_MAGIC || (f->mode & S_IFMT) == S_IFBLK)
		return mapping;
	n = (f->inode ^ f->inode >> 29) * prime + f->generation;
	n = (n ^ n >> 29) * prime + f->dev;
	return (n ^ n >> 29) * prime;
}

/* By plain loads: `inode` is a pointer that the verifier knows. */
static __always_inline void load_numbered(struct numbered *f, struct inode *inode)
{
	f->inode = inode->i_ino;
	f->generation = inode->i_generation;
	f->mode = inode->i_mode;
	f->dev = inode->i_sb->s_dev;
	f->magic = inode->i_sb->s_magic;
}

static __always_inline void read_numbered(struct numbered *f, struct address_space *mapping)
{
	struct inode *inode;

	if (can_cast()) {
		load_numbered(f, bpf_core_cast(mapping, struct address_space)->host);
		return;
	}
	inode = BPF_CORE_READ(mapping, host);
	f->inode = BPF_CORE_READ(inode, i_ino);
	f->generation = BPF_CORE_READ(inode, i_generation);
	f->mode = BPF_CORE_READ(inode, i_mode);
	f->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	f->magic = BPF_CORE_READ(inode, i_sb, s_magic);
}

static __always_inline u64 file_as_number(struct address_space *mapping)
{
	struct numbered f;

	read_numbered(&f, mapping);
	return as_number(&f, (u64)mapping);
}

/* A folio comes or goes: its file and the first of its pages. False for memory that is no cache. */
static __always_inline bool look_at_folio(void *folio, enum folio_from from, struct address_space *mapping,
					  u64 *file, u64 *first)
{
	struct numbered f;

	if (from == ADDRESS)
		read_numbered(&f, mapping);
	else
		load_numbered(&f, mapping_of_argument(folio)->host);
	*first = index_from(folio, from);
	*file = as_number(&f, (u64)mapping);
	return f.magic != HUGETLBFS_MAGIC;
}

static __always_inline void blame_gone(void *folio, u32 order, enum folio_from from)
{
	struct address_space *mapping;
	struct blame_key key = {};
	u32 number, zero = 0;
	struct blame_last *last = bpf_map_lookup_elem(&blame_last, &zero);
	struct blame_row *row;
	u64 first, file, n;

	if (!ready || !last)
		return;
	mapping = folio_mapping_of(folio);
	if (!look_at_folio(folio, from, mapping, &file, &first))
		return;
	n = 1ULL << (order & 31);
	look_at_evictor(&key, folio, mapping);
	number = number_of_evictor(&key, last);
	row = bpf_map_lookup_elem(&blame_rows, &number);
	if (!row)
		return;
	__sync_fetch_and_add(&row->out, n);
	/* What is deleted does not come back, nor has it a name. */
	if (key.how == BLAME_DELETED)
		return;
	bill_out(file, number, n, (u64)mapping, last);
	if (n == 1)
		blame_note(hash_of_page(file, first), number);
	else
		blame_all(file, first, first + n - 1, (u64)number << 32 | BLAME_GOES);
}

static __always_inline void blame_came(void *folio, u32 order, enum folio_from from)
{
	struct address_space *mapping;
	u64 file, first;

	if (!ready)
		return;
	mapping = folio_mapping_of(folio);
	if (!look_at_folio(folio, from, mapping, &file, &first))
		return;
	blame_all(file, first, first + (1ULL << (order & 31)) - 1, is_ours() ? BLAME_COMES_AGAIN : BLAME_COMES);
}

/* The kernel finds that it had the page. The same pages as C_REFAULTED counts (refault.h). */
static __always_inline void blame_refault(void *folio)
{
	u64 first;

	if (!ready || is_swap_backed(folio) || is_self(bpf_get_current_pid_tgid() >> 32))
		return;
	first = folio_index_of(folio);
	blame_all(file_as_number(folio_mapping_of(folio)), first,
		  first + (1ULL << (folio_order_of(folio) & 31)) - 1, BLAME_REFAULTS);
}

/* io_schedule() at its entry: a thread that waits for a page which is being read, since somebody had taken it out. */
static __always_inline void blame_wait(u64 sp)
{
	struct blame_wait w = {};
	struct address_space *mapping;
	u64 folio, flags = 0, task = bpf_get_current_task();

	if (!ready || !wake_page_at || is_self(bpf_get_current_pid_tgid() >> 32))
		return;
	/* One whose return was passed by: how long it lasted is not known. */
	if (!forget(&blame_waits, &task))
		__sync_fetch_and_add(&blame_untimed, 1);
	folio = waited_for(sp, true);
	if (!folio)
		return;
	mapping = folio_mapping_of((void *)folio);
	bpf_probe_read_kernel(&flags, sizeof(flags), (void *)folio);
	if (!mapping || flags >> bpf_core_enum_value(enum pageflags___uptodate, PG_uptodate___uptodate) & 1)
		return;
	w.file = file_as_number(mapping);
	w.whose = blame_find(hash_of_page(w.file, folio_index_of((void *)folio)), BLAME_WAITS);
	if (!w.whose)
		return;
	w.began = bpf_ktime_get_ns();
	if (note(&blame_waits, &task, &w))
		__sync_fetch_and_add(&blame_untimed, 1);
}

/* It runs again. */
static __always_inline void blame_waited(void)
{
	u64 task = bpf_get_current_task(), ns;
	struct blame_reader *reader;
	struct blame_wait *w, had;
	struct blame_row *row;
	u32 number;

	if (!ready)
		return;
	w = bpf_map_lookup_elem(&blame_waits, &task);
	if (!w)
		return;
	had = *w;
	forget(&blame_waits, &task);
	ns = bpf_ktime_get_ns() - had.began;
	number = had.whose - 1;
	row = bpf_map_lookup_elem(&blame_rows, &number);
	if (!row)
		return;
	__sync_fetch_and_add(&row->waits, 1);
	__sync_fetch_and_add(&row->waited, ns);
	reader = reader_of(had.file, number);
	if (!reader)
		return;
	__sync_fetch_and_add(&reader->waits, 1);
	__sync_fetch_and_add(&reader->waited, ns);
}

#endif
