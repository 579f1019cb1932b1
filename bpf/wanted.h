/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What is requested, where not everything is: decided where it happens, so that it needs no room that others could
 * take, and does not depend on what is still there when user space looks. Threads are judged when they get a row, which
 * they do anew under another name and in another cgroup; files when a process is about to get a row for one.
 */
#ifndef CACHETOP_WANTED_H
#define CACHETOP_WANTED_H

#include "opened.h"
#include "table.h"

#define GROUP_PATH 1024 /* what the kernel has room for when it tells of a new cgroup */
#define GROUP_LEVELS 128 /* cgroups below each other */

enum only_file {
	ALL_FILES,
	ONE_FILE,
	ONE_DEVICE, /* a block device, read as a file */
	ONE_SYSTEM, /* the files of one file system */
};

/* Set before load. */
const volatile bool cgroup_v1 = false; /* the memory controller has a hierarchy of its own */
const volatile bool leave_out_self = true; /* the monitor's own work does not count */
const volatile bool only_some = false; /* some threads only: those that the next ones choose, all that are set */
const volatile bool only_processes = false;
const volatile bool only_names = false;
const volatile bool only_users = false;
const volatile bool only_groups = false;
const volatile u32 only_file = ALL_FILES;

enum asked_kind {
	ASKED_PROCESS, /* by its number; the value is when it was seen alive under that */
	ASKED_NAME,
	ASKED_USER,
	ASKED_GROUP, /* by the id of a cgroup */
	ASKED_PATH, /* of a cgroup, by its hash; the value is its place in asked_paths */
};

struct asked_key {
	u64 kind;
	u64 what[2];
};

/* All that is asked for: of each kind any will do. Looked up where a thread gets a row, at no event. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct asked_key);
	__type(value, u64);
} asked_for SEC(".maps");

struct group_path {
	u64 id; /* of the cgroup; another one if it goes and is made anew */
	char text[GROUP_PATH];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct group_path);
} asked_paths SEC(".maps");

/* Together, so that both are compared at once. */
volatile struct asking {
	u32 run; /* set by user space: the number of the run that lasts, else 0 */
	u32 epoch; /* another one whenever somebody is asked for, or is of a run, or is so no longer, without having changed */
} __attribute__((aligned(8))) asking = {};

#define asked_epoch asking.epoch

/*
 * The monitor's own number as the kernel has it: in a PID namespace it knows itself by another one, which outside may
 * be anybody's. 0: it is counted like others, or has not looked yet.
 */
volatile u32 self_tgid = 0;
volatile u32 monitor_tgid = 0; /* the same, always */

/* What a file of the monitor's is. What stat(2) says of a file is not always what the kernel goes by (btrfs). */
struct looked {
	u64 inode;
	u64 root; /* btrfs: the subvolume, each of which has inode numbers of its own */
	u64 root_at; /* where inodes have it, from the inode on */
	u32 generation;
	u32 dev; /* of the file system */
	u32 block; /* of a block device */
	u32 file; /* one more than the descriptor of the file that is looked at; 0: none */
};

volatile struct looked looked;

struct btrfs_inode___root {
	void *root;
	struct inode vfs_inode;
} __attribute__((preserve_access_index));

/* Until 6.0, a cgroup had the ids of all above it, itself included; since then (7f203bc89eb6) pointers to them. */
struct cgroup___ids {
	u64 ancestor_ids[0];
} __attribute__((preserve_access_index));
struct cgroup___pointers {
	struct cgroup *ancestors[0];
} __attribute__((preserve_access_index));

/* The cgroup that the memory of a thread is charged to: in version 2 one above its own, if that has no memory controller. */
static __always_inline struct cgroup *memory_group_of(struct task_struct *task)
{
	u32 n = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	struct cgroup_subsys_state **states, *state;

	states = (void *)word_of(&task->cgroups) + bpf_core_field_offset(struct css_set, subsys);
	state = (void *)word_of(states + n);
	return (void *)word_of(&state->cgroup);
}

static __always_inline u64 id_of_group(struct cgroup *cgroup)
{
	struct kernfs_node *node = (void *)word_of(&cgroup->kn);

	return word_of(&node->id);
}

/* The cgroup of the memory controller in version 1, else the only one there is. */
static __always_inline struct cgroup *group_of(struct task_struct *task)
{
	struct css_set *set;

	if (cgroup_v1)
		return memory_group_of(task);
	set = (void *)word_of(&task->cgroups);
	return (void *)word_of(&set->dfl_cgrp);
}

/* Null: that is not asked for. */
static __always_inline u64 *find_asked(u64 kind, u64 what, u64 more)
{
	struct asked_key key = {.kind = kind, .what = {what, more}};

	return bpf_map_lookup_elem(&asked_for, &key);
}

/* Whether a cgroup is one that is asked for, or lies below one. Global: verified once. */
__noinline int in_group(u64 cgroup)
{
	u32 level = BPF_CORE_READ((struct cgroup *)cgroup, level), i;
	u64 id, above;

	for (i = 0; i < GROUP_LEVELS && i <= level; i++) {
		id = 0;
		if (bpf_core_field_exists(struct cgroup___pointers, ancestors)) {
			above = 0;
			bpf_probe_read_kernel(
				&above, sizeof(above),
				(void *)(cgroup + i * sizeof(u64) +
					 bpf_core_field_offset(struct cgroup___pointers, ancestors)));
			id = BPF_CORE_READ((struct cgroup *)above, kn, id);
		} else {
			bpf_probe_read_kernel(
				&id, sizeof(id),
				(void *)(cgroup + i * sizeof(u64) +
					 bpf_core_field_offset(struct cgroup___ids, ancestor_ids)));
		}
		if (find_asked(ASKED_GROUP, id, 0))
			return 1;
	}
	return 0;
}

/*
 * Whether what a thread of a process of this name does is to be counted. The running thread: a number alone would mean the next process
 * that has it, too, when the one that was asked for has ended and others have not.
 */
static __always_inline bool is_wanted(struct task_struct *task, u32 tgid, const char *process)
{
	const u64 *name = (const void *)process;
	u64 *seen;

	if (!only_some)
		return true;
	if (only_processes) {
		seen = find_asked(ASKED_PROCESS, tgid, 0);
		if (!seen || BPF_CORE_READ(task, group_leader, start_time) > *seen)
			return false;
	}
	if (only_names && !find_asked(ASKED_NAME, name[0], name[1]))
		return false;
	if (only_users && !find_asked(ASKED_USER, running_user(), 0))
		return false;
	return !only_groups || in_group((u64)group_of(task));
}

/* Whether a file is to be counted. */
static __always_inline bool is_wanted_file(struct inode *inode)
{
	u64 root = 0;

	if (only_file == ALL_FILES)
		return true;
	if (only_file == ONE_DEVICE)
		return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK &&
		       BPF_CORE_READ(inode, i_rdev) == looked.block;
	if (BPF_CORE_READ(inode, i_sb, s_dev) != looked.dev)
		return false;
	if (only_file == ONE_SYSTEM)
		return true;
	if (BPF_CORE_READ(inode, i_ino) != looked.inode ||
	    BPF_CORE_READ(inode, i_generation) != looked.generation)
		return false;
	if (!looked.root)
		return true;
	bpf_probe_read_kernel(&root, sizeof(root), (void *)inode + looked.root_at);
	return root == looked.root;
}

/* Cgroups are made one at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct group_path);
} group_made SEC(".maps");

/* What the path of the cgroup that is made is found by: FNV-1a. Global: else what follows would be verified for each length. */
__noinline u64 hash_of_made(void)
{
	u64 hash = 0xcbf29ce484222325ULL;
	struct group_path *made;
	u32 zero = 0, i;

	made = bpf_map_lookup_elem(&group_made, &zero);
	if (!made)
		return 0;
	for (i = 0; i < GROUP_PATH; i++) {
		if (!made->text[i])
			break;
		hash = (hash ^ (u8)made->text[i]) * 0x100000001b3ULL;
	}
	return hash;
}

/* A cgroup is made, and nobody is in it yet. If one that is asked for had gone, this is it. */
static __always_inline void on_group(struct cgroup *cgroup, const char *path)
{
	struct asked_key key = {.kind = ASKED_GROUP};
	struct group_path *made, *wanted;
	u32 zero = 0, i, mask, place;
	u64 *at, none = 0;

	if (!cgroup_v1) {
		if (BPF_CORE_READ(cgroup, root, hierarchy_id))
			return;
	} else {
		mask = BPF_CORE_READ(cgroup, root, subsys_mask);
		if (!(mask >> bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id) & 1))
			return;
	}
	made = bpf_map_lookup_elem(&group_made, &zero);
	if (!made || bpf_probe_read_kernel_str(made->text, sizeof(made->text), path) <= 0)
		return;
	at = find_asked(ASKED_PATH, hash_of_made(), 0);
	if (!at)
		return;
	place = *at;
	wanted = bpf_map_lookup_elem(&asked_paths, &place);
	if (!wanted)
		return;
	for (i = 0; i < GROUP_PATH; i++) {
		if (made->text[i] != wanted->text[i])
			return;
		if (!made->text[i])
			break;
	}
	key.what[0] = wanted->id;
	forget(&asked_for, &key);
	wanted->id = BPF_CORE_READ(cgroup, kn, id);
	key.what[0] = wanted->id;
	note(&asked_for, &key, &none);
	asked_epoch++;
}

/* The inode of an open file of the running thread. */
static __always_inline struct inode *inode_at(u32 fd)
{
	struct file *file = file_at_descriptor(fd);

	return BPF_CORE_READ(file, f_inode);
}

/* The monitor looks at itself, before anything counts. */
static __always_inline void on_look(void)
{
	struct inode *inode = inode_at(looked.file - 1);

	monitor_tgid = bpf_get_current_pid_tgid() >> 32;
	if (leave_out_self)
		self_tgid = monitor_tgid;
	if (!inode)
		return;
	looked.inode = BPF_CORE_READ(inode, i_ino);
	looked.generation = BPF_CORE_READ(inode, i_generation);
	looked.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	looked.block = BPF_CORE_READ(inode, i_rdev);
}

/* And at the subvolume, if it is a file of btrfs: the kernel's module knows where it is, from 5.11 on. */
static __always_inline void on_look_btrfs(void)
{
	struct inode *inode = inode_at(looked.file - 1);
	u64 root = 0;

	if (!inode || !bpf_core_field_exists(struct btrfs_inode___root, root))
		return;
	looked.root_at = (u64)bpf_core_field_offset(struct btrfs_inode___root, root) -
			 (u64)bpf_core_field_offset(struct btrfs_inode___root, vfs_inode);
	bpf_probe_read_kernel(&root, sizeof(root), (void *)inode + looked.root_at);
	looked.root = root;
}

#endif
