/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who pushed whose pages out of the cache, and which of them came back (`cachestat --blame`). Programs of their own, on
 * the events that others count: where nobody asks they are not loaded, and the others are what they were.
 *
 * Whoever takes pages out is the running task; why is known by marks that the kernel leaves on it, so that nothing is to
 * be remembered from one event to another, and none can be lost: reclaim has its state on the stack (reclaim_state, part of
 * a scan_control, which says whose limit it serves), everything else is in a system call.
 */
#ifndef CACHETOP_BLAME_H
#define CACHETOP_BLAME_H

#include "flight.h"
#include "follow.h"
#include "pages.h"

#define PF_KSWAPD 0x00020000
#define PROC_MAGIC 0x9fa0
#define POSIX_FADV_DONTNEED 4
#define MADV_REMOVE 9
#define MADV_PAGEOUT 21
#define MEMCG_FLAGS 7ULL /* low bits of memcg_data that are no address */

/* How pages go; those before BLAME_DONTNEED by reclaim. The same names, in order, in src/blame.rs. */
enum blame_how {
	BLAME_KSWAPD,
	BLAME_DIRECT,
	BLAME_LIMIT,
	BLAME_PROACTIVE,
	BLAME_PAGEOUT,
	BLAME_DAMON,
	BLAME_RECLAIM,
	BLAME_DONTNEED,
	BLAME_DROPPED,
	BLAME_DELETED,
	BLAME_TRUNCATED,
	BLAME_INVALIDATED,
	/* MADV_PAGEOUT, where the kernel does not mark that as reclaim (5.10). */
	BLAME_ADVISED,
	BLAME_HOWS,
};

/* The same in src/kernel/blame.rs. */
struct blame_key {
	u64 limit; /* cgroup whose limit, or whose memory.reclaim; 0: of none */
	u64 by; /* cgroup of the task; 0: kswapd */
	u64 owner; /* cgroup that the page was charged to; 0: to none */
	char process[NAME];
	u32 how;
	u32 run; /* that it happened in, twice its number, and 1: a process of the run, or one that was asked for, did it */
};

struct blame_row {
	struct blame_key key;
	u64 out; /* pages that left */
	u64 back; /* of these, pages that were added to the cache again */
	u64 refaulted; /* pages for which the kernel itself says that they had been evicted */
	u64 again; /* of `back`, those that a process of the run brought in */
	u64 waits; /* of threads, for pages of `back` that were being read */
	u64 waited; /* ns, of these */
};

/*
 * The first BLAME_HOWS rows are for those for which there is no room. A table of numbers and not of the rows, since what
 * is remembered of a page is a number.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct blame_row);
} blame_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct blame_key);
	__type(value, u32);
} blame_numbers SEC(".maps");

/* Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} blame_free SEC(".maps");

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

/* Set by user space: the number of the run that lasts, else 0. */
volatile u32 blame_run = 0;

volatile u64 blame_forgotten = 0; /* pages that others took the place of before they came back */
volatile u64 blame_strangers = 0; /* pages that the kernel says were evicted, not known by whom */

/* memcg_data came in 5.11 (bcfe06bf2622), in the folio with 5.16; from 7.1 on it leads there by an obj_cgroup. */
struct folio___charged {
	unsigned long memcg_data;
} __attribute__((preserve_access_index));
struct page___charged {
	unsigned long memcg_data;
} __attribute__((preserve_access_index));
struct mem_cgroup___blame {
	struct cgroup_subsys_state css;
} __attribute__((preserve_access_index));
struct page___group {
	struct mem_cgroup___blame *mem_cgroup;
} __attribute__((preserve_access_index));
struct obj_cgroup___root {
	struct mem_cgroup___blame *memcg;
	bool is_root;
} __attribute__((preserve_access_index));

struct reclaim_state___blame {
	int any;
} __attribute__((preserve_access_index));
struct scan_control___blame {
	struct mem_cgroup___blame *target_mem_cgroup;
	unsigned int proactive : 1; /* 6.0 */
	struct reclaim_state___blame reclaim_state;
} __attribute__((preserve_access_index));

struct path___blame {
	struct dentry *dentry;
} __attribute__((preserve_access_index));
struct file___blame {
	struct path___blame f_path;
} __attribute__((preserve_access_index));

static __always_inline u64 id_of_memory(struct mem_cgroup___blame *group)
{
	return group ? BPF_CORE_READ(group, css.cgroup, kn, id) : 0;
}

/* The cgroup that a folio is charged to. */
static __always_inline u64 owner_of_folio(void *folio)
{
	u64 word;

	if (bpf_core_field_exists(struct folio___charged, memcg_data))
		word = BPF_CORE_READ((struct folio___charged *)folio, memcg_data);
	else if (bpf_core_field_exists(struct page___charged, memcg_data))
		word = BPF_CORE_READ((struct page___charged *)folio, memcg_data);
	else if (bpf_core_field_exists(struct page___group, mem_cgroup))
		word = (u64)BPF_CORE_READ((struct page___group *)folio, mem_cgroup);
	else
		return 0;
	word &= ~MEMCG_FLAGS;
	if (word && bpf_core_field_exists(struct obj_cgroup___root, is_root))
		word = (u64)BPF_CORE_READ((struct obj_cgroup___root *)word, memcg);
	return id_of_memory((void *)word);
}

/* The registers that the running thread entered the kernel with; null for a thread of the kernel's own. */
static __always_inline struct pt_regs *entered_with(struct task_struct *task, u32 flags)
{
	if (flags & (PF_KTHREAD | PF_IO_WORKER) || BPF_CORE_READ(task, thread_info.status) & TS_COMPAT)
		return 0;
	/* From 5.15. Before, they are at the top of the stack, without padding. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (void *)((u64)BPF_CORE_READ(task, stack) + STACK_SIZE - bpf_core_type_size(struct pt_regs));
}

/* Whether a descriptor of the running thread is /proc/sys/vm/drop_caches. */
static __always_inline bool is_drop_caches(struct task_struct *task, u32 fd)
{
	const char wanted[] = "drop_caches";
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(fdt, fd), *file = 0;
	char name[sizeof(wanted)] = {};
	u32 i;

	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return false;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	if (!file || BPF_CORE_READ(file, f_inode, i_sb, s_magic) != PROC_MAGIC)
		return false;
	bpf_probe_read_kernel(name, sizeof(name),
			      BPF_CORE_READ((struct file___blame *)file, f_path.dentry, d_name.name));
	for (i = 0; i < sizeof(wanted); i++)
		if (name[i] != wanted[i])
			return false;
	return true;
}

/* Whether it is madvise or process_madvise with this advice. */
static __always_inline bool is_advice(struct pt_regs *regs, s64 nr, u32 advice)
{
	return (nr == NR_madvise && (u32)BPF_CORE_READ(regs, CALL_ARG2) == advice) ||
	       (nr == NR_process_madvise && (u32)BPF_CORE_READ(regs, CALL_ARG3) == advice);
}

/* Why pages go that no reclaim takes. `nr` and the arguments are those of the system call, -1: there is none. */
static __always_inline u32 why_removed(struct task_struct *task, u32 flags, struct inode *inode)
{
	struct pt_regs *regs = entered_with(task, flags);
	s64 nr = regs ? (s64)BPF_CORE_READ(regs, CALL_NUMBER) : -1;

	if (nr == NR_fadvise64 && (u32)BPF_CORE_READ(regs, CALL_ARG3) == POSIX_FADV_DONTNEED)
		return BLAME_DONTNEED;
	if ((nr == NR_write || nr == NR_pwrite64 || nr == NR_writev) &&
	    is_drop_caches(task, BPF_CORE_READ(regs, CALL_ARG0)))
		return BLAME_DROPPED;
	if (is_advice(regs, nr, MADV_PAGEOUT))
		return BLAME_ADVISED;
	if (!BPF_CORE_READ(inode, i_nlink))
		return BLAME_DELETED;
	if (is_advice(regs, nr, MADV_REMOVE))
		return BLAME_TRUNCATED;
	switch (nr) {
	case NR_truncate:
	case NR_ftruncate:
	case NR_fallocate:
	case NR_open:
	case NR_creat:
	case NR_openat:
	case NR_openat2:
		return BLAME_TRUNCATED;
	default:
		return BLAME_INVALIDATED;
	}
}

static __always_inline u32 why_reclaimed(struct task_struct *task, u32 flags, struct blame_key *key)
{
	u64 state = (u64)BPF_CORE_READ(task, reclaim_state);
	struct scan_control___blame *control;
	struct pt_regs *regs;
	s64 nr;

	if (state && bpf_core_field_exists(struct scan_control___blame, reclaim_state)) {
		control = (void *)(state - bpf_core_field_offset(struct scan_control___blame, reclaim_state));
		key->limit = id_of_memory(BPF_CORE_READ(control, target_mem_cgroup));
		if (bpf_core_field_exists(struct scan_control___blame, proactive) &&
		    BPF_CORE_READ_BITFIELD_PROBED(control, proactive))
			return BLAME_PROACTIVE;
		return key->limit ? BLAME_LIMIT : BLAME_DIRECT;
	}
	/* MADV_PAGEOUT, DAMON and those who need pages at a place of memory set the flag only (reclaims). */
	if (state)
		return BLAME_RECLAIM;
	if (flags & PF_KTHREAD)
		return *(u64 *)key->process << 8 == 0x646e6f6d61646b00ULL /* "kdamond" */ ? BLAME_DAMON
											  : BLAME_RECLAIM;
	regs = entered_with(task, flags);
	nr = regs ? (s64)BPF_CORE_READ(regs, CALL_NUMBER) : -1;
	return is_advice(regs, nr, MADV_PAGEOUT) ? BLAME_PAGEOUT : BLAME_RECLAIM;
}

/*
 * Whether the running process belongs to the run that lasts (those that an earlier one left behind are others), or to what was
 * asked for.
 */
static __always_inline bool is_ours(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (only_some)
		return is_asked_for(tgid);
	return with_follow && blame_run && run_of(tgid) == blame_run;
}

/* Who takes the folio out, and whose it is. */
static __noinline void look_at_evictor(struct blame_key *key, void *folio, struct inode *inode)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 flags = BPF_CORE_READ(task, flags);

	key->owner = owner_of_folio(folio);
	key->run = blame_run << 1;
	if (flags & PF_KSWAPD) {
		key->how = BLAME_KSWAPD;
	} else {
		key->run |= is_ours();
		key->by = cgroup_of(task);
		name_of(BPF_CORE_READ(task, group_leader), key->process);
		key->how = reclaims() ? why_reclaimed(task, flags, key) : why_removed(task, flags, inode);
	}
	RETURN_NOTHING();
}

/* The number of its row: one of those for everybody, where there is no room. */
static __noinline u32 number_of_evictor(struct blame_key *key)
{
	u32 *known = bpf_map_lookup_elem(&blame_numbers, key), n = 0;
	struct blame_row *row;

	if (known)
		return *known;
	if (pop_number(&blame_free, &n))
		return key->how;
	row = bpf_map_lookup_elem(&blame_rows, &n);
	if (!row)
		return key->how;
	row->key = *key;
	if (!bpf_map_update_elem(&blame_numbers, key, &n, BPF_NOEXIST))
		return n;
	/* Another processor was faster. The row stays empty, and waits for the next one. */
	push_number(&blame_free, &n);
	known = bpf_map_lookup_elem(&blame_numbers, key);
	return known ? *known : key->how;
}

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
	u32 i, at = BLAME_WAYS;

	if (!set)
		return 0;
	for (i = 0; i < BLAME_WAYS; i++) {
		u64 page = set->page[i];

		if (BLAME_TAG(page) == BLAME_TAG(hash) && page) {
			set->page[i] = BLAME_TAG(hash) | (number + 1);
			return 0;
		}
		if (!page || page & BLAME_BACK)
			at = i;
	}
	if (at == BLAME_WAYS) {
		at = bpf_get_prandom_u32();
		__sync_fetch_and_add(&blame_forgotten, 1);
	}
	set->page[at & (BLAME_WAYS - 1)] = BLAME_TAG(hash) | (number + 1);
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
static __always_inline u64 file_as_number(struct address_space *mapping)
{
	const u64 prime = 0x9e3779b97f4a7c15ULL;
	u64 n, number, generation, dev, magic;
	struct inode *inode;
	umode_t mode;

	if (can_cast()) {
		inode = bpf_core_cast(mapping, struct address_space)->host;
		number = inode->i_ino;
		generation = inode->i_generation;
		mode = inode->i_mode;
		dev = inode->i_sb->s_dev;
		magic = inode->i_sb->s_magic;
	} else {
		inode = BPF_CORE_READ(mapping, host);
		number = BPF_CORE_READ(inode, i_ino);
		generation = BPF_CORE_READ(inode, i_generation);
		mode = BPF_CORE_READ(inode, i_mode);
		dev = BPF_CORE_READ(inode, i_sb, s_dev);
		magic = BPF_CORE_READ(inode, i_sb, s_magic);
	}
	if (magic == BTRFS_MAGIC || (mode & S_IFMT) == S_IFBLK)
		return (u64)mapping;
	n = (number ^ number >> 29) * prime + generation;
	n = (n ^ n >> 29) * prime + dev;
	return (n ^ n >> 29) * prime;
}

static __always_inline void blame_gone(void *folio, u32 order, enum folio_from from)
{
	struct address_space *mapping;
	struct blame_key key = {};
	struct blame_row *row;
	u64 first, file, n;
	u32 number;

	if (!ready)
		return;
	mapping = folio_mapping_of(folio);
	if (folio_is_hugetlb(folio, mapping, from))
		return;
	first = index_from(folio, from);
	n = 1ULL << (order & 31);
	look_at_evictor(&key, folio, BPF_CORE_READ(mapping, host));
	number = number_of_evictor(&key);
	row = bpf_map_lookup_elem(&blame_rows, &number);
	if (!row)
		return;
	__sync_fetch_and_add(&row->out, n);
	/* What is deleted does not come back, nor has it a name. */
	if (key.how == BLAME_DELETED)
		return;
	file = file_as_number(mapping);
	bill_out(file, number, n, (u64)mapping);
	blame_all(file, first, first + n - 1, (u64)number << 32 | BLAME_GOES);
}

static __always_inline void blame_came(void *folio, u32 order, enum folio_from from)
{
	struct address_space *mapping;
	u64 first;

	if (!ready)
		return;
	mapping = folio_mapping_of(folio);
	if (folio_is_hugetlb(folio, mapping, from))
		return;
	first = index_from(folio, from);
	blame_all(file_as_number(mapping), first, first + (1ULL << (order & 31)) - 1,
		  is_ours() ? BLAME_COMES_AGAIN : BLAME_COMES);
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
	u64 folio, flags = 0, task;

	if (!ready || !wake_page_at || is_self(bpf_get_current_pid_tgid() >> 32))
		return;
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
	task = bpf_get_current_task();
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
