/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who takes a page out of the cache, and whose page it is (blame.h: which of them come back). Whoever takes pages out is the
 * running task; why is known by marks that the kernel leaves on it, so that nothing of it depends on an event that might be lost (what
 * alike.h remembers is compared with these marks): reclaim has its state on the stack (reclaim_state, part of a scan_control, which says
 * whose limit it serves), everything else is in a system call.
 */
#ifndef CACHETOP_EVICTOR_H
#define CACHETOP_EVICTOR_H

#include "follow.h"
#include "pages.h"
#include "task.h"

#define PF_KSWAPD 0x00020000
#define PROC_MAGIC 0x9fa0
#define POSIX_FADV_DONTNEED 4
#define MADV_REMOVE 9
#define MADV_PAGEOUT 21
#define MEMCG_FLAGS 7ULL /* low bits of memcg_data that are no address */

/* Set before load: somebody asks for it. */
const volatile bool with_blame = false;

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
	u64 out; /* pages that left, but for those that are billed by file (bill.h) */
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

static __always_inline u64 id_of_memory(struct mem_cgroup___blame *group)
{
	if (!group || !bpf_core_type_exists(struct mem_cgroup___blame))
		return 0;
	return id_of_group((void *)word_of(&group->css.cgroup));
}

/* What a folio says of the cgroup that it is charged to, of which it holds a reference. */
static __always_inline u64 charged_to(void *folio, enum folio_from from)
{
	u64 word;

	if (bpf_core_field_exists(struct folio___charged, memcg_data))
		word = from == ARGUMENT_OF_BTF ? ((struct folio___charged *)folio)->memcg_data
					       : word_of(&((struct folio___charged *)folio)->memcg_data);
	else if (bpf_core_field_exists(struct page___charged, memcg_data))
		word = word_of(&((struct page___charged *)folio)->memcg_data);
	else if (bpf_core_field_exists(struct page___group, mem_cgroup))
		word = word_of(&((struct page___group *)folio)->mem_cgroup);
	else
		return 0;
	return word & ~MEMCG_FLAGS;
}

/* That cgroup; 0: none. */
static __always_inline u64 group_charged(u64 charged)
{
	if (charged && bpf_core_field_exists(struct obj_cgroup___root, is_root))
		return word_of(&((struct obj_cgroup___root *)charged)->memcg);
	return charged;
}

static __always_inline u64 group_id_charged(u64 charged)
{
	return id_of_memory((void *)group_charged(charged));
}

/* The first words of the name of an open file of the running thread, if it is one of /proc. */
static __always_inline bool proc_name(u32 fd, u64 name[2])
{
	struct file *file = file_at_descriptor(fd);
	struct super_block *system;
	struct dentry *entry;
	struct inode *inode;
	void *text;

	if (!file)
		return false;
	inode = (void *)word_of(&file->f_inode);
	system = (void *)word_of(&inode->i_sb);
	if (word_of(&system->s_magic) != PROC_MAGIC)
		return false;
	entry = (void *)word_of(&file->f_path.dentry);
	text = (void *)word_of(&entry->d_name.name);
	name[0] = word_of(text);
	name[1] = word_of(text + sizeof(*name));
	return true;
}

/* Whether a descriptor of the running thread is /proc/sys/vm/drop_caches. */
static __always_inline bool is_drop_caches(u32 fd)
{
	u64 name[2] = {};

	return proc_name(fd, name) && name[0] == 0x6361635f706f7264ULL /* "drop_cac" */ &&
	       (u32)name[1] == 0x00736568 /* "hes" */;
}

/* How many names a file has. */
static __always_inline u32 links_of(struct address_space *mapping)
{
	if (can_cast())
		return bpf_core_cast(mapping, struct address_space)->host->i_nlink;
	return BPF_CORE_READ(mapping, host, i_nlink);
}

/* Why pages go that no reclaim takes. `nr` and the arguments are those of the system call, -1: there is none. */
static __always_inline u32 why_removed(u32 flags, struct address_space *mapping)
{
	struct pt_regs *regs = entered_with(flags);
	s64 nr = regs ? (s64)REGISTER(regs, CALL_NUMBER) : -1;

	if (nr == NR_fadvise64 && (u32)REGISTER(regs, CALL_ARG3) == POSIX_FADV_DONTNEED)
		return BLAME_DONTNEED;
	if ((nr == NR_write || nr == NR_pwrite64 || nr == NR_writev) &&
	    is_drop_caches(REGISTER(regs, CALL_ARG0)))
		return BLAME_DROPPED;
	if (is_advice(regs, nr, MADV_PAGEOUT))
		return BLAME_ADVISED;
	if (!links_of(mapping))
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

/* Where there is a `reclaim_state` in it, which is what a task points to. */
static __always_inline struct scan_control___blame *control_of(u64 state)
{
	return (void *)(state - bpf_core_field_offset(struct scan_control___blame, reclaim_state));
}

/* Whose limit is reclaimed for, by its address, and whether somebody asked for it (1). */
struct limit {
	u64 target;
	u64 proactive;
};

static __always_inline struct limit limit_of(struct scan_control___blame *control)
{
	struct limit limit = {};
	u64 words[4] = {}, at, bits = 0;

	if (can_cast())
		limit.target = (u64)bpf_core_cast(control, struct scan_control___blame)->target_mem_cgroup;
	else if (!bpf_probe_read_kernel(words, sizeof(words), &control->target_mem_cgroup))
		limit.target = words[0];
	if (!bpf_core_field_exists(struct scan_control___blame, proactive))
		return limit;
	/* The eight bytes that begin with its own: how many its own are is known only as the program is loaded, which costs branches. */
	at = __CORE_RELO(control, proactive, BYTE_OFFSET);
	if (can_cast()) {
		bits = word_at((void *)control + at);
	} else {
		at -= bpf_core_field_offset(struct scan_control___blame, target_mem_cgroup);
		/* It is behind the address, and near, where it is at all. */
		if (at <= sizeof(words) - sizeof(bits))
			bits = *(u64 *)((void *)words + at);
		else
			bpf_probe_read_kernel(&bits, sizeof(bits),
					      (void *)control + __CORE_RELO(control, proactive, BYTE_OFFSET));
	}
	limit.proactive = bits << __CORE_RELO(control, proactive, LSHIFT_U64) >>
			  __CORE_RELO(control, proactive, RSHIFT_U64);
	return limit;
}

static __always_inline u32 why_reclaimed(u32 flags, struct blame_key *key)
{
	struct pt_regs *regs;
	struct limit limit;
	u64 state;
	s64 nr;

	state = word_of(&((struct task_struct *)bpf_get_current_task())->reclaim_state);
	if (state && bpf_core_field_exists(struct scan_control___blame, reclaim_state)) {
		limit = limit_of(control_of(state));
		key->limit = id_of_memory((void *)limit.target);
		if (limit.proactive)
			return BLAME_PROACTIVE;
		return key->limit ? BLAME_LIMIT : BLAME_DIRECT;
	}
	/* MADV_PAGEOUT, DAMON and those who need pages at a place of memory set the flag only (reclaims). */
	if (state)
		return BLAME_RECLAIM;
	if (flags & PF_KTHREAD)
		return *(u64 *)key->process << 8 == 0x646e6f6d61646b00ULL /* "kdamond" */ ? BLAME_DAMON
											  : BLAME_RECLAIM;
	regs = entered_with(flags);
	nr = regs ? (s64)REGISTER(regs, CALL_NUMBER) : -1;
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
	return with_follow && asking.run && run_of(tgid) == asking.run;
}

/* Who takes a page out that is charged to something, and whose it is. */
static __noinline void look_at_evictor(struct blame_key *key, u64 charged, struct address_space *mapping)
{
	u32 flags = running_flags();

	key->owner = group_id_charged(charged);
	key->run = asking.run << 1;
	if (flags & PF_KSWAPD) {
		key->how = BLAME_KSWAPD;
	} else {
		key->run |= is_ours();
		key->by = running_cgroup();
		name_of_process(key->process);
		key->how = reclaims() ? why_reclaimed(flags, key) : why_removed(flags, mapping);
	}
	RETURN_NOTHING();
}

static __always_inline bool same_evictor(const struct blame_key *a, const struct blame_key *b)
{
	return a->limit == b->limit && a->by == b->by && a->owner == b->owner &&
	       same_name(a->process, b->process) && a->how == b->how && a->run == b->run;
}

/* The number of its row, which may be the last one: one of those for everybody, where there is no room. */
static __always_inline u32 number_of_evictor(struct blame_key *key, u32 last)
{
	struct blame_row *row = last ? bpf_map_lookup_elem(&blame_rows, &last) : 0;
	u32 n;

	if (row && same_evictor(&row->key, key))
		return last;
	n = find_or_take(&blame_numbers, &blame_rows, &blame_free, key, sizeof(*key));
	return n ? n : key->how;
}

#endif
