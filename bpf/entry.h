/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How a thread entered the kernel, and what its system call requested: known by the registers that it came with. The
 * functions are for kernels from 6.12 on, where any address can be read by plain loads (core.h).
 */
#ifndef CACHETOP_ENTRY_H
#define CACHETOP_ENTRY_H

#include "pages.h"

#define MAX_RW_COUNT 0x7ffff000ULL
#define MAX_IOV 8

enum { NR_compat = -2 };

/* How the thread entered the kernel. */
struct entry {
	s64 nr; /* -1: not by a system call; NR_compat: by one of another table (32-bit programs) */
	bool kernel;
	u64 a0, a1, a2, a3, a4;
};

static __always_inline void entry_of(struct entry *e)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	e->kernel = task->flags & (PF_KTHREAD | PF_IO_WORKER);
	e->nr = -1;
	e->a0 = e->a1 = e->a2 = e->a3 = e->a4 = 0;
	if (e->kernel)
		return;
	if (of_other_table(task)) {
		e->nr = NR_compat;
		return;
	}
	e->nr = (s64)regs->CALL_NUMBER;
	e->a0 = regs->CALL_ARG0;
	e->a1 = regs->CALL_ARG1;
	e->a2 = regs->CALL_ARG2;
	e->a3 = regs->CALL_ARG3;
	e->a4 = regs->CALL_ARG4;
}

/* Where the registers of a system call lie in the stack of a thread, the same for all: 0: nobody has seen it yet. */
u32 regs_at = 0;

static __always_inline void see_regs(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (unlikely(!regs_at))
		regs_at = (u32)low_half((void *)bpf_task_pt_regs(task)) - (u32)word_at(&task->stack);
}

/* The running thread's: a call less than to ask for them. */
static __always_inline struct pt_regs *regs_seen(struct task_struct *task)
{
	return bpf_core_cast((void *)((u64)task->stack + regs_at), struct pt_regs);
}

static __always_inline struct file *file_of(u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *fdt = bpf_core_cast(task->files, struct files_struct)->fdt;

	fdt = bpf_core_cast(fdt, struct fdtable);
	if (fd >= fdt->max_fds)
		return 0;
	return (void *)word_at((void *)word_at(&fdt->fd) + fd * sizeof(void *));
}

static __always_inline struct address_space *file_mapping_of(struct file *file)
{
	return (void *)word_at(&file->f_mapping);
}

struct iovec_user {
	u64 base;
	u64 len;
};

/* The byte range that a read call requested; false where the registers do not say, and no bytes where they say its beginning alone. */
static __always_inline bool asked(struct entry *e, u64 *pos, u64 *count)
{
	struct file *file;
	u64 n = 0;
	u32 i;

	switch (e->nr) {
	case NR_pread64:
		*pos = e->a3;
		*count = e->a2;
		break;
	case NR_read:
	case NR_readv:
	case NR_preadv:
	case NR_preadv2:
		*pos = e->a3;
		if (e->nr == NR_read || e->nr == NR_readv || (e->nr == NR_preadv2 && e->a3 == ~0ULL)) {
			file = file_of(e->a0);
			if (!file)
				return false;
			*pos = bpf_core_cast(file, struct file)->f_pos;
		}
		if (e->nr == NR_read) {
			*count = e->a2;
			break;
		}
		*count = 0;
		if (e->a2 > MAX_IOV)
			return false;
		for (i = 0; i < MAX_IOV && i < e->a2; i++) {
			struct iovec_user v = {};

			if (bpf_probe_read_user(&v, sizeof(v), (void *)(e->a1 + i * sizeof(v))))
				return false;
			n += v.len;
		}
		*count = n;
		break;
	default:
		return false;
	}
	if (*count > MAX_RW_COUNT)
		*count = MAX_RW_COUNT;
	return *count > 0;
}

/* Whether it sends from a file, in pieces. */
static __always_inline bool sends(struct entry *e)
{
	return e->nr == NR_sendfile || e->nr == NR_splice || e->nr == NR_copy_file_range;
}

/* The range that one of these requested; neither the file's position nor the word that the offset is in changes before it ends. */
static __always_inline bool asked_to_send(struct entry *e, u64 *pos, u64 *count)
{
	u64 offset = e->nr == NR_sendfile ? e->a2 : e->a1;
	struct file *file;
	u64 at;

	*count = e->nr == NR_sendfile ? e->a3 : e->a4;
	if (*count > MAX_RW_COUNT)
		*count = MAX_RW_COUNT;
	if (offset) {
		if (bpf_probe_read_user(pos, sizeof(*pos), (void *)offset))
			return false;
	} else {
		file = file_of(e->nr == NR_sendfile ? e->a1 : e->a0);
		if (!file)
			return false;
		at = bpf_core_cast(file, struct file)->f_pos;
		asm volatile(
			""
			: "+r"(at)); /* else one load serves the stack and the file, which the verifier refuses */
		*pos = at;
	}
	return *count && (s64)*pos >= 0;
}

/* Whether a block device's page is added for a read of the device itself, not for a file system's metadata. */
static __always_inline bool reads_device(struct entry *e, void *folio)
{
	struct file *file;

	if (e->nr != NR_read && e->nr != NR_pread64 && e->nr != NR_readv && e->nr != NR_preadv &&
	    e->nr != NR_preadv2)
		return false;
	file = file_of(e->a0);
	return file && file_mapping_of(file) == folio_mapping_of(folio);
}

enum sent_from { SOURCE, TARGET, EITHER };

/*
 * Which file of a transfer pages were added to: these write, too, and only the source's were read. A file on overlayfs has another mapping than
 * what is added to, which is that of the file below: then it is the one that the other file is not, if that is no regular one.
 */
static __always_inline enum sent_from sent_from(struct entry *e, struct address_space *m)
{
	struct file *in = file_of(e->nr == NR_sendfile ? e->a1 : e->a0);
	struct file *out = file_of(e->nr == NR_sendfile ? e->a0 : e->a2);

	if (in && file_mapping_of(in) == m)
		return SOURCE;
	if (!in || !out || file_mapping_of(out) == m)
		return TARGET;
	return (BPF_CORE_READ(out, f_inode, i_mode) & S_IFMT) == S_IFREG ? EITHER : SOURCE;
}

/* Whether it is a system call that reads by itself, before it returns: all that it adds and looks up is for that. */
static __always_inline bool reads_itself(struct entry *e)
{
	switch (e->kernel ? -1 : e->nr) {
	case NR_read:
	case NR_pread64:
	case NR_readv:
	case NR_preadv:
	case NR_preadv2:
	case NR_execve:
	case NR_execveat:
	case NR_sendfile:
	case NR_splice:
	case NR_copy_file_range:
	case NR_compat:
		return true;
	default:
		return false;
	}
}

#endif
