/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Pages that come, go and get dirty, whoever sees the event. */
#ifndef CACHETOP_PAGES_H
#define CACHETOP_PAGES_H

#include "file.h"
#include "shmem.h"
#include "thread.h"
#include "touch.h"

/*
 * Or'ed to a mapping's address in the ledger: pages that an unfinished request is for, where the thread's own
 * list does not do (calls.h): io_uring requests that a worker may finish, and lists that are full.
 */
#define DEMANDED 1

struct added {
	struct address_space *mapping;
	u64 first;
	u64 last;
};

static __always_inline void *folio_of_pfn(u64 pfn)
{
	u64 base = 0;

	if (can_cast())
		base = word_at((void *)vmemmap_base_at);
	else
		bpf_probe_read_kernel(&base, sizeof(base), (void *)vmemmap_base_at);
	return (void *)(base + pfn * bpf_core_type_size(struct page));
}

static __always_inline umode_t mode_of(struct address_space *mapping)
{
	if (can_cast())
		return bpf_core_cast(mapping, struct address_space)->host->i_mode;
	return BPF_CORE_READ(mapping, host, i_mode);
}

/*
 * Directories, inode tables and bitmaps come through the block device's mapping. btrfs keeps its trees in an inode
 * that looks like a regular file on some kernels; numbers below 256 are never a user's file there.
 */
static __always_inline bool is_metadata(struct address_space *mapping)
{
	struct inode *inode;

	if ((mode_of(mapping) & S_IFMT) != S_IFREG)
		return true;
	if (can_cast()) {
		inode = bpf_core_cast(mapping, struct address_space)->host;
		return inode->i_ino < 256 && inode->i_sb->s_magic == BTRFS_MAGIC;
	}
	return BPF_CORE_READ(mapping, host, i_ino) < 256 &&
	       BPF_CORE_READ(mapping, host, i_sb, s_magic) == BTRFS_MAGIC;
}

/* By plain loads: `mapping` is a pointer that the verifier knows. */
static __always_inline bool known_is_metadata(struct address_space *mapping)
{
	struct inode *inode = mapping->host;

	if ((inode->i_mode & S_IFMT) != S_IFREG)
		return true;
	return inode->i_ino < 256 && inode->i_sb->s_magic == BTRFS_MAGIC;
}

static __always_inline bool known_is_hugetlb(struct address_space *mapping)
{
	return mapping->host->i_sb->s_magic == HUGETLBFS_MAGIC;
}

static __always_inline bool is_hugetlb(struct address_space *mapping)
{
	if (can_cast())
		return known_is_hugetlb(bpf_core_cast(mapping, struct address_space));
	return BPF_CORE_READ(mapping, host, i_sb, s_magic) == HUGETLBFS_MAGIC;
}

/* How a program got at a folio. */
enum folio_from {
	ADDRESS, /* as a number */
	ARGUMENT_OF_BTF, /* as an argument of a BTF tracepoint */
};

/* Folios of hugetlbfs are large: nearly always it need not be looked at. */
static __always_inline bool folio_is_hugetlb(void *folio, u32 order, struct address_space *mapping,
					     enum folio_from from)
{
	if (bpf_core_type_exists(struct folio) && order < HUGE_ORDER)
		return false;
	return from == ADDRESS ? is_hugetlb(mapping) : known_is_hugetlb(mapping_of_argument(folio));
}

static __always_inline bool folio_is_metadata(void *folio, struct address_space *mapping, enum folio_from from)
{
	return from == ADDRESS ? is_metadata(mapping) : known_is_metadata(mapping_of_argument(folio));
}

/* What an argument holds becomes a number in a row (number_of), where there is one. */
static __always_inline struct address_space *mapping_from(struct row *row, void *folio, enum folio_from from)
{
	if (from == ARGUMENT_OF_BTF && row)
		return (void *)number_of(row, mapping_of_argument(folio));
	return folio_mapping_of(folio);
}

static __always_inline u64 index_from(void *folio, enum folio_from from)
{
	return from == ADDRESS ? folio_index_of(folio) : index_of_argument(folio);
}

/* The row of a folio's file, whose pages come or get dirty. */
static __always_inline struct file_row *file_of_folio(struct row *row, void *folio,
						      struct address_space *mapping, enum folio_from from)
{
	if (!with_files)
		return 0; /* first: of a flag that is not set nothing but its loading is left */
	if (from == ARGUMENT_OF_BTF && row && last_file_will_do())
		return file_used(row, mapping_of_argument(folio), (u64)mapping, 0);
	return file_seen(row, (u64)mapping, 0);
}

/* `w`: the thread's window, where the plan has any; `f`: the row of the file, where files are requested. */
static __always_inline void count_prefetch_of(struct account *a, struct window *w, struct file_row *f,
					      u64 mapping, u64 first, u64 last, enum ledger_mode mode,
					      enum touch how)
{
	file_count(f, FC_PREFETCHED, last - first + 1);
	COUNT(a, C_PREFETCHED, last - first + 1);
	touch(a->row, mapping, first, last, how);
	if (ready)
		ledger_set_next(w, mapping, first, last, mode);
}

static __always_inline void count_prefetch(struct account *a, struct window *w, u64 mapping, u64 first, u64 last,
					   enum ledger_mode mode, enum touch how)
{
	if (first <= last)
		count_prefetch_of(a, w, file_before(a->row, mapping), mapping, first, last, mode, how);
}

/*
 * For a huge page, by a thread of the kernel: read ahead, and used through the mapping, where nobody sees it. So the ledger does
 * not wait for its first use: it would be called wasted.
 */
static __always_inline void count_collapsed(struct account *a, struct added *p)
{
	u64 n = p->last - p->first + 1;

	file_count(file_before(a->row, (u64)p->mapping), FC_PREFETCHED, n);
	COUNT(a, C_PREFETCHED, n);
}

/* Splits an addition at a request: what lies in [first, last] is left in *in_first, *in_last; returns how much. */
static __always_inline u64 split_added(struct account *a, struct window *w, struct added *p, u64 first, u64 last,
				       u64 *in_first, u64 *in_last, enum ledger_mode mode)
{
	u64 s = p->first > first ? p->first : first;
	u64 e = p->last < last ? p->last : last;

	if (first > last || s > e) {
		count_prefetch(a, w, (u64)p->mapping, p->first, p->last, mode, TOUCH_AHEAD);
		return 0;
	}
	if (p->first < s)
		count_prefetch(a, w, (u64)p->mapping, p->first, s - 1, mode, TOUCH_AHEAD);
	if (p->last > e)
		count_prefetch(a, w, (u64)p->mapping, e + 1, p->last, mode, TOUCH_AHEAD);
	*in_first = s;
	*in_last = e;
	return e - s + 1;
}

/*
 * An addition inside a write. Writes go upwards: what is added below the last one went and comes again, in the same
 * call, when there is no room on the device. Its neighbours in a large folio were not read ahead.
 */
static __always_inline void added_by_write(struct account *a, struct frame *f, struct added *p)
{
	u64 s = p->first > f->first ? p->first : f->first;
	u64 e = p->last < f->last ? p->last : f->last;
	u64 n, all = p->last - p->first + 1;

	if (f->added && s <= f->added_last)
		s = f->added_last + 1;
	n = f->first > f->last || s > e ? 0 : e - s + 1;
	if (n < all)
		COUNT(a, C_OTHER_FILLS, all - n);
	if (!n)
		return;
	if (!f->added)
		f->added_first = s;
	f->added_last = e;
	f->added += n;
}

static __always_inline void added_of(struct added *p, struct row *row, void *folio, u32 order,
				     enum folio_from from)
{
	p->mapping = mapping_from(row, folio, from);
	p->first = index_from(folio, from);
	p->last = p->first + (1ULL << (order & 31)) - 1;
}

/* Fills *p; false if the addition is none of ours. `a` has been opened. */
static __always_inline bool look_at_added(struct added *p, struct account *a, void *folio, u32 order,
					  enum folio_from from)
{
	added_of(p, a->row, folio, order, from);
	if (folio_is_hugetlb(folio, order, p->mapping, from))
		return false;
	file_of_folio(a->row, folio, p->mapping, from);
	return true;
}

/*
 * Pages beside the one of a fault, in the folio that was added for it. Where the fault maps these, too, they may be used unseen from now on:
 * they are not called wasted later.
 */
static __always_inline void added_beside(struct account *a, struct window *w, u64 mapping, u64 first, u64 last,
					 bool mapped, enum ledger_mode mode)
{
	if (first > last)
		return;
	if (!mapped) {
		count_prefetch(a, w, mapping, first, last, mode, TOUCH_AROUND);
		return;
	}
	file_count(file_before(a->row, mapping), FC_PREFETCHED, last - first + 1);
	COUNT(a, C_PREFETCHED, last - first + 1);
	touch(a->row, mapping, first, last, TOUCH_AROUND);
}

/* A page that a fault requested is neither a read's miss nor read-ahead; its neighbours are read-ahead. */
static __always_inline void added_by_fault(struct account *a, struct window *w, struct added *p, u64 at,
					   enum ledger_mode mode)
{
	bool mapped = maps_folios() || p->last - p->first >= HUGE_PAGES - 1;

	if (at < p->first || at > p->last) {
		count_prefetch(a, w, (u64)p->mapping, p->first, p->last, mode, TOUCH_AROUND);
		return;
	}
	COUNT(a, C_FAULT_FILLS, 1);
	if (at > p->first)
		added_beside(a, w, (u64)p->mapping, p->first, at - 1, mapped, mode);
	added_beside(a, w, (u64)p->mapping, at + 1, p->last, mapped, mode);
}

/* How many pages the folio of a page has that is mapped as a whole, less one: else none. */
static __always_inline u64 mapped_with(u64 mapping, u64 index)
{
	u64 folio = bpf_core_type_exists(struct folio) ? folio_of_page(mapping, index) : 0;
	u32 order = folio ? folio_order_of((void *)folio) & 31 : 0;

	/* It may have gone by now, and say anything. */
	if (order > HUGE_ORDER)
		order = HUGE_ORDER;
	return maps_folios() || order == HUGE_ORDER ? (1ULL << order) - 1 : 0;
}

/* What is rare of the next one. */
static __noinline void take_mapped(u64 mapping, u64 first, u64 last)
{
	u64 end = last | mapped_with(mapping, last);

	ledger_take(mapping, first & ~mapped_with(mapping, first), end, BITS);
	RETURN_NOTHING();
}

/*
 * A fault uses its page, though it is no read. What is mapped around it, and the rest of folios that are mapped as a whole, may be used unseen
 * from now on: it is not called wasted later.
 */
static __always_inline void used_by_fault(u64 mapping, u64 first, u64 last)
{
	if (unlikely(*(volatile u64 *)filter_slot(mapping)))
		take_mapped(mapping, first, last);
}

/*
 * A read with RWF_DONTCACHE drops pages as it goes, before its exit asks the ledger about them. What it drops inside
 * its own range it has used.
 */
static __always_inline void used_by_request(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	struct row *row;
	struct thread *t;
	struct frame *f;

	if (!bpf_core_enum_value_exists(enum pageflags___later, PG_dropbehind___later))
		return;
	row = own_row(false);
	if (!row || !row->depth)
		return;
	t = thread_of(row);
	if (!t)
		return;
	f = frame_on(row, t, mapping);
	if (!f || f->kind != F_READ)
		return;
	if (first < f->first)
		first = f->first;
	if (last > f->last)
		last = f->last;
	if (first <= last)
		f->dropped += ledger_take(mapping, first, last, mode);
}

/*
 * Whether anything of a folio's file is in the ledger, DEMANDED or not: nearly always nothing. Most pages go by a thread that has no row,
 * which takes long to find out.
 */
static __always_inline bool in_ledger(void *folio, enum folio_from from)
{
	u64 mapping = from == ADDRESS ? (u64)folio_mapping_of(folio) : low_half(mapping_of_argument(folio));

	return *(volatile u64 *)filter_slot(mapping);
}

/* Takes pages that go out of the ledger; how many of them nobody has used. */
static __always_inline u64 forget_pages(u64 mapping, u64 first, u64 last, enum ledger_mode mode)
{
	u64 wasted;

	used_by_request(mapping, first, last, mode);
	wasted = ledger_take(mapping, first, last, mode);
	if (mode == BITS)
		ledger_take(mapping | DEMANDED, first, last, mode);
	return wasted;
}

/*
 * Whether the running task takes back memory: kswapd, direct and cgroup reclaim have this flag for as long as they run, and so have
 * MADV_PAGEOUT and DAMON, which set nothing else (`reclaim_state`).
 */
static __always_inline bool reclaims(void)
{
	return running_flags() & PF_MEMALLOC;
}

/* A folio goes some pages of whose file nobody has used. */
static __always_inline void gone_unused(void *folio, u32 order, enum folio_from from, enum ledger_mode mode)
{
	struct address_space *mapping = folio_mapping_of(folio);
	u64 first = index_from(folio, from);
	u64 wasted = forget_pages((u64)mapping, first, first + (1ULL << (order & 31)) - 1, mode);

	if (wasted && !folio_is_metadata(folio, mapping, from))
		count_nobodys(C_PREFETCH_WASTED, wasted);
}

/*
 * Whether a folio of several pages becomes dirty in a write whose end is seen: what that takes is used, and no more (used_by_write). `row` may be
 * null.
 */
static __always_inline bool in_write(struct row *row, u64 mapping)
{
	struct thread *t;
	struct frame *f;

	if (!row)
		return false;
	/* Whoever writes has no frame until somebody looks for one. */
	if (row->writing)
		return true;
	if (with_plain && row->plain_bytes && row->plain_writes && row->plain_mapping == mapping)
		return !plain_has_ended(row);
	t = row->depth ? thread_of(row) : 0;
	if (!t)
		return false;
	f = frame_at(t, row->depth - 1);
	return f->mapping == mapping && f->kind == F_WRITE;
}

/* A clean folio becomes dirty, as a whole. What is written has been used. */
static __always_inline void on_dirty(void *folio, u32 order, enum folio_from from, enum ledger_mode mode)
{
	struct address_space *mapping;
	struct account a;
	u64 first, last, n;

	if (!ready)
		return;
	if (!account_open(&a))
		return;
	mapping = mapping_from(a.row, folio, from);
	if (!mapping)
		return;
	first = index_from(folio, from);
	n = 1ULL << (order & 31);
	last = first + n - 1;
	if (folio_is_metadata(folio, mapping, from)) {
		COUNT(&a, C_META_DIRTIED, n);
	} else {
		file_count(file_of_folio(a.row, folio, mapping, from), FC_DIRTIED, n);
		COUNT(&a, C_DIRTIED, n);
		touch_dirty(a.row, (u64)mapping, first, last);
		if (n > 1 && mode == BITS && in_write(a.row, (u64)mapping))
			return;
	}
	ledger_take((u64)mapping, first, last, mode);
}

static __always_inline void on_buffer_dirty(void)
{
	struct account a;

	if (ready && account_open(&a))
		COUNT(&a, C_BUFFER_DIRTIED, 1);
}

#endif
