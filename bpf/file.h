/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which files: a row for each file that a process uses, found through the thread's own row (the file that it used
 * last) or by the mapping's address and the process. An address says which file only together with inode number and
 * generation: an inode may go, and another take its place in memory. Names are read once, when the row is made.
 * Nothing of this costs anything unless somebody asks (`with_files`).
 */
#ifndef CACHETOP_FILE_H
#define CACHETOP_FILE_H

#include "opened.h"
#include "own.h"

#define MAX_PARTS 12

struct file_key {
	u64 mapping;
	u64 owner;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u32);
} file_numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct file_row);
} files SEC(".maps");

/* As `rows_taken`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} files_taken SEC(".maps");

/* As many as there are rows, with the same numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct file_name);
} file_names SEC(".maps");

/* Numbers of rows that are free, handed out and taken back by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__type(value, u32);
} free_files SEC(".maps");

static __always_inline struct file_row *file_at(u32 n)
{
	return bpf_map_lookup_elem(&files, &n);
}

/* The directory entry that an inode's list of names begins with. */
static __always_inline struct dentry *dentry_of(struct hlist_node *alias)
{
	if (bpf_core_field_exists(struct dentry, d_u))
		return (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
	return (void *)alias - bpf_core_field_offset(struct dentry___anonymous, d_alias);
}

static __always_inline struct dentry *last_known_entry(struct inode *inode)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);

	return alias ? dentry_of(alias) : 0;
}

/* Writes down what a directory entry is called: components from the last to the first, a zero after each. */
static __always_inline void write_name(struct file_name *name, struct dentry *dentry)
{
	struct dentry *parent;
	u32 i, at = 0;

	name->how = FILE_UNNAMED;
	name->length = 0;
	if (!dentry)
		return;
	name->how = FILE_NAME_CUT;
	for (i = 0; i < MAX_PARTS; i++) {
		const unsigned char *text = BPF_CORE_READ(dentry, d_name.name);
		long got;

		if (at >= FILE_NAME - 256)
			break;
		asm volatile("" : "+r"(at)); /* keeps the mask, which bounds the index for the verifier */
		got = bpf_probe_read_kernel_str(name->text + (at & (FILE_NAME - 257)), 256, text);
		if (got <= 0 || got > 256)
			break;
		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			/* The root of the file system, or what no directory has (memfd). */
			if (name->text[at & (FILE_NAME - 257)] != '/') {
				at += got;
				if (!i)
					name->how = FILE_LOOSE;
			} else {
				name->how = i ? FILE_NAMED : FILE_UNNAMED;
			}
			break;
		}
		at += got;
		dentry = parent;
	}
	name->length = at;
}

/* The same for the row of a file: as the running thread has opened it, if that is known. Global: verified once. */
__noinline int name_file(u32 n, u64 inode, u64 file, u64 writing)
{
	struct file_name *name = bpf_map_lookup_elem(&file_names, &n);
	struct dentry *dentry;

	if (!name)
		return 0;
	dentry = dentry_opened((void *)inode, (void *)file, (void *)writing);
	write_name(name, dentry ? dentry : last_known_entry((void *)inode));
	return 0;
}

static __always_inline void forget_file(struct file_key *key, struct file_row *f)
{
	f->mapping = 0;
	f->state = FILE_ENDED;
	f->touched = 1;
	bpf_map_delete_elem(&file_numbers, key);
}

/* log2 of the pages of a part, of a file of so many. */
static __always_inline u32 order_of_parts(u64 pages)
{
	u64 n = pages ? (pages - 1) / FILE_PARTS : 0;
	u32 order = 0, step;

#pragma unroll
	for (step = 32; step; step >>= 1) {
		if (n >> step) {
			n >>= step;
			order += step;
		}
	}
	return order + n;
}

/*
 * Some of a file is read, from `pos` on. Not atomic: of two threads that meet one may be forgotten. Before it is counted, so that user space
 * knows of no count without its part.
 */
static __always_inline void file_covers(struct file_row *f, u64 pos, u64 bytes)
{
	u32 parts, order;
	u64 first, last;

	if (!with_follow || !f || !bytes)
		return;
	if (f->next != pos)
		f->stretches++;
	f->next = pos + bytes;
	parts = f->parts;
	order = (parts >> FILE_PARTS & 63) + PAGE_SHIFT;
	first = order < 64 ? pos >> order : 0;
	last = order < 64 ? (pos + bytes - 1) >> order : 0;
	if (last >= FILE_PARTS)
		last = FILE_PARTS - 1;
	if (first <= last)
		f->parts = parts | ((2U << last) - (1U << first));
	barrier();
}

static __always_inline u32 make_file(struct row *row, struct file_key *key, struct inode *inode, u64 opened)
{
	struct file_row *f;
	u32 n, *other;

	if (pop_number(&free_files, &n)) {
		count_one(C_LOST_FILES);
		return NO_FILE;
	}
	f = file_at(n);
	if (!f)
		return NO_FILE;
	f->inode = BPF_CORE_READ(inode, i_ino);
	f->generation = BPF_CORE_READ(inode, i_generation);
	f->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	f->links = BPF_CORE_READ(inode, i_nlink);
	f->block = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK ? BPF_CORE_READ(inode, i_rdev) : 0;
	f->tgid = row->tgid;
	f->uid = row->uid;
	f->run = row->run;
	f->cgroup = row->cgroup;
	f->owner = row->owner;
	__builtin_memcpy(f->process, row->process, sizeof(f->process));
	f->sketch = 0;
	f->parts = with_follow ? order_of_parts(pages_in(BPF_CORE_READ(inode, i_size))) << FILE_PARTS : 0;
	f->next = ~0ULL;
	f->stretches = 0;
	f->born = bpf_ktime_get_ns();
	name_file(n, (u64)inode, opened, row->writing);
	f->made++;
	f->state = FILE_LIVE;
	f->touched = 1; /* user space must know of it, whether or not anything will be counted */
	tell_taken(&files_taken, n);
	f->mapping = key->mapping;
	if (!bpf_map_update_elem(&file_numbers, key, &n, BPF_NOEXIST))
		return n;
	/* Another thread of the process was faster. User space takes this one back. */
	f->mapping = 0;
	f->state = FILE_ENDED;
	other = bpf_map_lookup_elem(&file_numbers, key);
	if (other)
		return *other;
	count_one(C_LOST_FILES);
	return NO_FILE;
}

/* The row of a file for the owner of a thread's row: its number. `opened`: the open file, if known. Global: verified once. */
__noinline u32 search_file(u32 number, u64 mapping, u64 opened)
{
	struct inode *inode = BPF_CORE_READ((struct address_space *)mapping, host);
	struct row *row = row_at(number);
	struct file_key key = {.mapping = mapping};
	struct file_row *f;
	u32 *n;

	if (!row || !inode || !row->wanted)
		return NO_FILE;
	key.owner = row->owner;
	n = bpf_map_lookup_elem(&file_numbers, &key);
	if (!is_wanted_file(inode)) {
		/* A wanted file is gone, and its inode's place in memory was taken by this one: what it does is not its. */
		f = n ? file_at(*n) : 0;
		if (f)
			forget_file(&key, f);
		return NO_FILE;
	}
	if (n) {
		f = file_at(*n);
		if (f && f->mapping == mapping && f->inode == BPF_CORE_READ(inode, i_ino) &&
		    f->generation == BPF_CORE_READ(inode, i_generation)) {
			f->links = BPF_CORE_READ(inode, i_nlink);
			return *n;
		}
		/* The file is gone, and its inode's place in memory was taken by another. */
		if (f)
			forget_file(&key, f);
	}
	return make_file(row, &key, inode, opened);
}

/* The file that a thread used last, if it is the one that it uses now. */
static __always_inline struct file_row *file_again(struct row *row, struct address_space *m, u64 mapping)
{
	struct file_row *f = file_at(row->file);
	struct inode *inode = m->host;

	if (!f || f->mapping != mapping || f->owner != row->owner || f->inode != inode->i_ino ||
	    f->generation != inode->i_generation)
		return 0;
	if (unlikely(f->links != inode->i_nlink))
		f->links = inode->i_nlink;
	return f;
}

/* The thread uses this file from now on. */
static __always_inline struct file_row *find_file(struct row *row, u64 mapping, u64 opened)
{
	u32 n = search_file(row->number, mapping, opened);

	if (n == NO_FILE)
		return 0;
	row->file = n;
	return file_at(n);
}

/*
 * The file that a thread uses now; `m` is what `mapping` points to, `opened` the open file, null where it is not at hand. Null where
 * nobody asks, or for want of room.
 */
static __always_inline struct file_row *file_used(struct row *row, struct address_space *m, u64 mapping,
						  struct file *opened)
{
	struct file_row *f;

	if (!with_files)
		return 0;
	f = file_again(row, m, mapping);
	if (f)
		return f;
	return find_file(row, mapping, opened ? number_of(row, opened) : 0);
}

/*
 * Whether the row that the thread used last may do for pages that come. Where files are chosen, each is looked at: what takes the place of
 * an inode has pages brought in before any is read, and may differ by its device or btrfs's subvolume alone (is_wanted_file).
 */
static __always_inline bool last_file_will_do(void)
{
	return only_file == ALL_FILES;
}

/* The same, where only the address is known. The mapping must be in use. */
static __always_inline struct file_row *file_seen(struct row *row, u64 mapping, u64 opened)
{
	struct file_row *f;

	if (!with_files || !row)
		return 0;
	if (can_cast() && last_file_will_do()) {
		f = file_again(row, bpf_core_cast((void *)mapping, struct address_space), mapping);
		if (f)
			return f;
	}
	return find_file(row, mapping, opened);
}

/* The same for a file that the thread has used: its mapping may be gone by now. */
static __always_inline struct file_row *file_before(struct row *row, u64 mapping)
{
	struct file_key key = {.mapping = mapping};
	struct file_row *f;
	u32 *n;

	if (!with_files || !row)
		return 0;
	f = file_at(row->file);
	if (f && f->mapping == mapping && f->owner == row->owner)
		return f;
	key.owner = row->owner;
	n = bpf_map_lookup_elem(&file_numbers, &key);
	return n ? file_at(*n) : 0;
}

/* A file row that is counted for later, perhaps by another thread: its number, and how often it had been made. */
struct file_held {
	u32 number;
	u32 made;
};

/* The row of a mapping that is in use. */
static __always_inline struct file_held file_hold(struct row *row, u64 mapping, u64 opened)
{
	struct file_held held = {.number = NO_FILE};
	struct file_row *f = file_seen(row, mapping, opened);

	if (f) {
		held.number = row->file;
		held.made = f->made;
	}
	return held;
}

/* Null where there was no room, which was counted then, and where the row was taken back since. */
static __always_inline struct file_row *file_of_held(struct file_held *held)
{
	struct file_row *f;

	if (!with_files || held->number == NO_FILE)
		return 0;
	f = file_at(held->number);
	/* Put away since: it is read once more. */
	if (f && f->made == held->made && (f->mapping || f->state == FILE_ENDED))
		return f;
	count_one(C_LOST_FILES);
	return 0;
}

/*
 * Threads of a process share the row: atomic. There is none where nobody asks for files. Whatever is counted for a file
 * is counted for its thread afterwards, never before: user space reads threads first, and so nothing is in the totals of
 * a tick that is missing in the files of the same tick for being under way (src/sample/line.rs).
 */
static __always_inline void file_count(struct file_row *f, enum file_counter counter, u64 n)
{
	if (!f || !n)
		return;
	__sync_fetch_and_add(&f->v[counter], n);
	f->touched = 1;
}

static __always_inline void file_read(struct file_row *f, u64 bytes, u64 hits, u64 ahead, u64 misses)
{
	if (!f)
		return;
	__sync_fetch_and_add(&f->v[FC_READ_BYTES], bytes);
	__sync_fetch_and_add(&f->v[FC_READ_HITS], hits);
	if (ahead)
		__sync_fetch_and_add(&f->v[FC_READ_AHEAD_HITS], ahead);
	if (misses)
		__sync_fetch_and_add(&f->v[FC_READ_MISSES], misses);
	f->touched = 1;
}

#endif
