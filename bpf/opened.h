/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Under which of its names a file was opened: a hard link is one of several, and of an inode alone there is no telling
 * which. Asked where a file gets its row, and nowhere else.
 */
#ifndef CACHETOP_OPENED_H
#define CACHETOP_OPENED_H

#include "task.h"

/* An open file of the running thread. */
static __always_inline struct file *file_at_descriptor(u32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (void *)BPF_CORE_READ(table, fd) + fd * sizeof(void *));
	return file;
}

/*
 * The directory entry that an open file was opened by. Null where it is another inode's: overlayfs and block devices have an
 * inode of their own for what is opened. Null, too, of a name that is none any more, or never was one (O_TMPFILE).
 */
static __always_inline struct dentry *dentry_of_file(struct file *file, struct inode *inode)
{
	struct dentry *entry = BPF_CORE_READ(file, f_path.dentry);

	if (!entry || BPF_CORE_READ(entry, d_inode) != inode)
		return 0;
	return BPF_CORE_READ(entry, d_hash.pprev) ? entry : 0;
}

/* The same by the descriptors that the running system call was given. */
static __always_inline struct dentry *dentry_of_call(struct inode *inode)
{
	struct pt_regs *regs = entered_with(running_flags());
	struct dentry *entry;
	s64 nr;
	u32 fd;

	if (!regs)
		return 0;
	nr = (s64)REGISTER(regs, CALL_NUMBER);
	if (nr < 0)
		return 0; /* a fault */
	entry = dentry_of_file(file_at_descriptor(REGISTER(regs, CALL_ARG0)), inode);
	if (entry)
		return entry;
	if (nr == NR_sendfile)
		fd = REGISTER(regs, CALL_ARG1);
	else if (nr == NR_splice || nr == NR_copy_file_range)
		fd = REGISTER(regs, CALL_ARG2);
	else if (nr == NR_mmap)
		fd = REGISTER(regs, CALL_ARG4);
	else
		return 0;
	return dentry_of_file(file_at_descriptor(fd), inode);
}

/*
 * By the file that the hook has at hand (null: none), the request of a write in progress (null: none), the call, or as the
 * program that runs. Null where nobody knows.
 */
static __always_inline struct dentry *dentry_opened(struct inode *inode, struct file *file,
						    struct kiocb *writing)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct dentry *entry = 0;

	if (file)
		entry = dentry_of_file(file, inode);
	if (!entry && writing)
		entry = dentry_of_file(BPF_CORE_READ(writing, ki_filp), inode);
	if (!entry)
		entry = dentry_of_call(inode);
	if (!entry)
		entry = dentry_of_file(BPF_CORE_READ(task, mm, exe_file), inode);
	return entry;
}

#endif
