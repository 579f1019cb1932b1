/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel types that the programs in bpf/ read, and nothing else. How it was made: see vmlinux/README.md.
 * Only names matter: every field is found in the running kernel's BTF at load time (CO-RE), so the order and
 * the padding of these declarations mean nothing. Shapes that differ between kernels are flavours in bpf/core.h.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
typedef long long loff_t;
typedef unsigned short umode_t;
typedef unsigned int dev_t;
enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_MMAPABLE = 1024 };

/* Asked for by name: a kernel that has the helper has the enumerator. */
typedef struct {
	__u32 val;
} kuid_t;

enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_task_pt_regs = 175,
	BPF_FUNC_loop = 181,
};

struct bpf_spin_lock {
	__u32 val;
};

enum cgroup_subsys_id {
	memory_cgrp_id = 0,
	CGROUP_SUBSYS_COUNT = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cred {
	kuid_t uid;
};

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip;
	unsigned long cs, flags, sp, ss;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct qstr {
	const unsigned char *name;
};

struct inode;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct hlist_bl_node d_hash;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct address_space;
struct inode {
	umode_t i_mode;
	unsigned int i_flags;
	unsigned int i_nlink;
	dev_t i_rdev;
	u32 i_generation;
	struct hlist_head i_dentry;
	unsigned long i_ino;
	loff_t i_size;
	struct super_block *i_sb;
	struct address_space *i_mapping;
};

struct btrfs_fs_info {
	struct inode *btree_inode;
};

/* len was an unsigned long until 6.8: its lower half is read. */
struct extent_buffer {
	u64 start;
	u32 len;
	unsigned long bflags;
	struct btrfs_fs_info *fs_info;
};

struct address_space {
	struct inode *host;
	unsigned long nrpages;
	unsigned long flags;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	unsigned int f_flags;
	loff_t f_pos;
	struct path f_path;
};

struct kiocb {
	struct file *ki_filp;
	loff_t ki_pos;
	int ki_flags;
	void *ki_complete;
};

enum iter_type {
	ITER_UBUF,
};

struct iov_iter {
	u8 iter_type;
	bool data_source;
	unsigned long iov_offset;
	void *ubuf;
	unsigned long count;
};

/* Direct I/O: through iomap, through buffer heads. */
struct iomap_dio {
	struct kiocb *iocb;
	loff_t i_size;
	loff_t size;
	unsigned int flags;
	int error;
};

struct bio {
	u8 bi_status;
};

struct iomap_dio_simple {
	struct kiocb *iocb;
	unsigned long size;
	struct bio bio;
};

struct dio {
	loff_t i_size;
	int page_errors;
	int io_error;
	struct kiocb *iocb;
	long result;
};

struct pipe_inode_info {
	unsigned int head;
	unsigned int tail;
	unsigned int max_usage;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct page {
	unsigned long flags;
};

struct buffer_head {
	unsigned long b_state;
	struct page *b_page;
	unsigned long long b_blocknr;
	unsigned long b_size;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
	unsigned long address;
	void *pmd;
	void *pte;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_io_accounting {
	u64 rchar;
	u64 wchar;
	u64 syscr;
	u64 syscw;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	unsigned int subsys_mask;
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

struct file_ra_state {
	unsigned long start;
	unsigned int size;
};

struct readahead_control {
	struct file *file;
	struct address_space *mapping;
	unsigned long _index;
};

struct thread_info {
	u32 status;
};

struct reclaim_state;
struct rb_node {
	unsigned long __rb_parent_color;
};

struct mm_struct {
	struct file *exe_file;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int __state;
	int pid;
	int tgid;
	void *stack;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_time;
	char comm[16];
	struct mm_struct *mm;
	struct cred *real_cred;
	struct files_struct *files;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct task_io_accounting ioac;
	struct reclaim_state *reclaim_state;
	unsigned long min_flt;
	unsigned long maj_flt;
	int pagefault_disabled;
};

struct trace_entry {
	unsigned short type;
};

struct trace_event_raw_mm_filemap_op_page_cache {
	struct trace_entry ent;
	unsigned long pfn;
	unsigned char order;
};

struct trace_event_raw_mm_vmscan_wakeup_kswapd {
	struct trace_entry ent;
	unsigned long gfp_flags;
};

struct trace_event_raw_cgroup_migrate {
	struct trace_entry ent;
	int pid;
};

struct trace_event_raw_task_rename {
	struct trace_entry ent;
	int pid;
	char newcomm[16];
};

struct trace_event_raw_sys_enter {
	long id;
	unsigned long args[6];
};

struct trace_event_raw_balance_dirty_pages {
	struct trace_entry ent;
	long pause;
};

struct io_kiocb {
	u8 opcode;
};

#pragma clang attribute pop
#endif
