/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The bill for what was pushed out: which files, and by whom it was brought in again. Part of blame.h. What leaves is
 * counted here alone, or, where there is no room for a row, in that of the evictor: user space adds up.
 */
#ifndef CACHETOP_BILL_H
#define CACHETOP_BILL_H

#include "alike.h"

/* Set before load: somebody asks for it. */
const volatile bool with_bill = false;

struct blame_share_key {
	u64 file; /* as a number */
	u32 number; /* of the row of who it was */
	u32 pad;
};

/* What somebody took out of one file. The same in src/kernel/bill.rs, as are those below. */
struct blame_share {
	struct blame_share_key key;
	u64 out; /* pages */
};

/* The first is nobody's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct blame_share);
} blame_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct blame_share_key);
	__type(value, u32);
} blame_share_numbers SEC(".maps");

/* Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} blame_shares_free SEC(".maps");

struct blame_file {
	u64 inode;
	u32 generation;
	u32 dev;
	u32 block;
	u32 name; /* its number among the names; that of none: there was no room */
};

/* Files by their numbers, and what they are called. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct blame_file);
} blame_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct file_name);
} blame_names SEC(".maps");

/* Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} blame_names_free SEC(".maps");

/* Who brought pages of a file in again that somebody had taken out. */
struct blame_reader_key {
	u64 file;
	u64 by; /* cgroup of the task */
	char process[NAME];
	u32 number; /* of the row of who had taken them out */
	u32 ours; /* a process of the run, or one that was asked for */
};

struct blame_reader {
	struct blame_reader_key key;
	u64 back; /* pages */
	u64 refaulted; /* as in blame_row, and so are these: */
	u64 waits;
	u64 waited;
};

/* The first is nobody's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct blame_reader);
} blame_readers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct blame_reader_key);
	__type(value, u32);
} blame_reader_numbers SEC(".maps");

/* Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, u32);
} blame_readers_free SEC(".maps");

/* A thread that waits for such a page, by the address of its task_struct. */
struct blame_wait {
	u64 file;
	u64 began;
	u32 whose; /* one more than the number of the row */
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct blame_wait);
} blame_waits SEC(".maps");

volatile u64 blame_untimed = 0; /* waits that there was no room for */

/* The first that is taken of a file: notes what it is. */
static __always_inline void bill_file(u64 file, u64 mapping)
{
	struct inode *inode = BPF_CORE_READ((struct address_space *)mapping, host);
	struct blame_file f = {.name = NO_FILE};
	struct file_name *name;
	u32 n = 0;

	if (bpf_map_lookup_elem(&blame_files, &file))
		return;
	f.inode = BPF_CORE_READ(inode, i_ino);
	f.generation = BPF_CORE_READ(inode, i_generation);
	f.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	f.block = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK ? BPF_CORE_READ(inode, i_rdev) : 0;
	if (!pop_number(&blame_names_free, &n)) {
		name = bpf_map_lookup_elem(&blame_names, &n);
		if (name) {
			write_name(name, last_known_entry(inode));
			f.name = n;
		}
	}
	/* Another processor was faster, or there is no room: the name waits for the next one. */
	if (bpf_map_update_elem(&blame_files, &file, &f, BPF_NOEXIST) && f.name != NO_FILE)
		push_number(&blame_names_free, &n);
}

/* The number of the row of a share, zero where there is no room. Global: verified once, and seldom run. */
__noinline u32 search_share(u64 file, u32 number, u64 mapping)
{
	struct blame_share_key key = {.file = file, .number = number};
	u32 n = find_or_take(&blame_share_numbers, &blame_shares, &blame_shares_free, &key, sizeof(key));
	struct blame_share *share = n ? bpf_map_lookup_elem(&blame_shares, &n) : 0;

	/* A new one. */
	if (share && !share->out)
		bill_file(file, mapping);
	return n;
}

/* Pages of a file go. False: there is no room. */
static __always_inline bool bill_out(u64 file, u32 number, u64 pages, u64 mapping, struct blame_last *last)
{
	struct blame_share *share;
	u32 n = last->share;

	if (!with_bill)
		return false;
	share = n ? bpf_map_lookup_elem(&blame_shares, &n) : 0;
	if (!share || share->key.file != file || share->key.number != number) {
		n = search_share(file, number, mapping);
		share = n ? bpf_map_lookup_elem(&blame_shares, &n) : 0;
		last->share = share ? n : 0;
		if (!share)
			return false;
	}
	__sync_fetch_and_add(&share->out, pages);
	return true;
}

/* The number of its row, zero where there is no room. */
static __noinline u32 search_reader(struct blame_reader_key *key)
{
	return find_or_take(&blame_reader_numbers, &blame_readers, &blame_readers_free, key, sizeof(*key));
}

static __always_inline bool same_reader(const struct blame_reader_key *a, const struct blame_reader_key *b)
{
	return a->file == b->file && a->by == b->by && same_name(a->process, b->process) &&
	       a->number == b->number && a->ours == b->ours;
}

/* The row of the running process, for pages of a file that it brings in; null where there is no room. */
static __always_inline struct blame_reader *reader_of(u64 file, u32 number)
{
	struct blame_reader_key key = {.file = file, .number = number};
	u32 n, zero = 0;
	struct blame_last *last = bpf_map_lookup_elem(&blame_last, &zero);
	struct blame_reader *reader;

	if (!last)
		return 0;
	key.by = running_cgroup();
	name_of_process(key.process);
	key.ours = is_ours();
	n = last->reader;
	reader = n ? bpf_map_lookup_elem(&blame_readers, &n) : 0;
	if (reader && same_reader(&reader->key, &key))
		return reader;
	n = search_reader(&key);
	if (!n)
		return 0;
	last->reader = n;
	return bpf_map_lookup_elem(&blame_readers, &n);
}

/* Pages come, or are found to have been evicted. Global: verified once. */
__noinline int bill_pages(u64 file, u32 number, u64 pages, u32 refaulted)
{
	struct blame_reader *reader = with_bill ? reader_of(file, number) : 0;

	if (!reader)
		return 0;
	if (refaulted)
		__sync_fetch_and_add(&reader->refaulted, pages);
	else
		__sync_fetch_and_add(&reader->back, pages);
	return 0;
}

#endif
