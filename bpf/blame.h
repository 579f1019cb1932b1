/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who pushed whose pages out of the cache, and which of them came back (`cachestat --blame`). Pages that go are seen by the programs
 * that count them, since a second program on an event costs a hundred instructions before it has done anything; all else by programs of its
 * own. Where nobody asks nothing of this is loaded.
 */
#ifndef CACHETOP_BLAME_H
#define CACHETOP_BLAME_H

#include "evicted.h"
#include "flight.h"

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

/* The same of one that goes: mostly it is of the file that the last one was of. */
static __always_inline u64 file_of_gone(struct blame_last *last, void *folio, enum folio_from from,
					struct address_space *mapping)
{
	struct inode *inode;
	struct numbered f;
	u64 file = last->file;

	if (from == ADDRESS)
		return file_as_number(mapping);
	inode = mapping_of_argument(folio)->host;
	if (last->mapping == (u64)mapping && last->generation == inode->i_generation) {
		/* Within a tick no other inode has its address (alike.h), but it may be another file: xfs takes it again. */
		if (last->looked && last->looked == last->tick.jiffies)
			return file;
		if (last->inode == inode->i_ino && last->dev == inode->i_sb->s_dev) {
			last->looked = last->tick.jiffies;
			return file;
		}
	}
	load_numbered(&f, inode);
	last->looked = last->tick.jiffies;
	last->block = NO_BLOCK;
	last->used_again = f.magic == XFS_MAGIC;
	last->dev = f.dev;
	last->inode = f.inode;
	last->generation = f.generation;
	last->file = as_number(&f, (u64)mapping);
	last->mapping = (u64)mapping;
	return last->file;
}

/* A folio goes, as no other one just before (blame_gone), or in the same way and of another block or file. */
static __always_inline void blame_gone_otherwise(struct blame_last *last, void *folio, u32 order,
						 enum folio_from from, bool alike)
{
	struct address_space *mapping = folio_mapping_of(folio);
	u64 first = index_from(folio, from), n = 1ULL << (order & 31), file = 0;
	u32 number = alike ? last->evictor : evictor_of(last, charged_to(folio, from), mapping);
	u32 of_row = number & ~BLAME_NAMELESS;
	struct blame_row *row;
	bool billed = false;

	/* What is deleted does not come back, nor has it a name. */
	if (!(number & BLAME_NAMELESS)) {
		file = file_of_gone(last, folio, from, mapping);
		billed = bill_out(file, number, n, (u64)mapping, last);
	}
	if (!billed) {
		row = bpf_map_lookup_elem(&blame_rows, &of_row);
		if (row)
			__sync_fetch_and_add(&row->out, n);
	}
	if (number & BLAME_NAMELESS)
		return;
	if (likely(n <= BLOCK_PAGES))
		pages_go(last, file, first >> BLOCK_SHIFT, pages_from(first, n), number);
	else
		blocks_go(file, first >> BLOCK_SHIFT, n >> BLOCK_SHIFT, number);
}

/* That stands apart: it would take the registers of what follows. */
typedef void rare_blame(struct blame_last *last, void *folio, u32 order, u32 alike);

/* A folio goes that is none of hugetlbfs (on_gone). */
static __always_inline void blame_gone(struct task_struct *task, void *folio, u32 order, enum folio_from from,
				       rare_blame *rare)
{
	u32 zero = 0;
	struct blame_last *last = bpf_map_lookup_elem(&blame_last, &zero);
	struct address_space *mapping = from == ADDRESS ? folio_mapping_of(folio) : mapping_of_argument(folio);
	u64 n = 1ULL << (order & 31);

	if (!last)
		return;
	if (!can_compare()) {
		rare(last, folio, order, false);
		barrier(); /* else all calls become one, and each test before them stays */
		return;
	}
	if (unlikely(!goes_alike(last, task, charged_to(folio, from), folio, mapping, from))) {
		rare(last, folio, order, false);
		return;
	}
	if (likely(n <= BLOCK_PAGES && pages_go_alike(last, mapping, index_from(folio, from), n)))
		return;
	barrier();
	rare(last, folio, order, true);
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
	pages_come(file, first, 1ULL << (order & 31), is_ours() ? BLAME_COMES_AGAIN : BLAME_COMES);
}

/* The kernel finds that it had the page. The same pages as C_REFAULTED counts (refault.h). */
static __always_inline void blame_refault(void *folio)
{
	if (!ready || is_swap_backed(folio) || is_self(bpf_get_current_pid_tgid() >> 32))
		return;
	pages_come(file_as_number(folio_mapping_of(folio)), folio_index_of(folio),
		   1ULL << (folio_order_of(folio) & 31), BLAME_REFAULTS);
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
	w.whose = whose_fault(w.file, folio_index_of((void *)folio));
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
