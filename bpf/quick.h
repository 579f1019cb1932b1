/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads that find their pages, where only tracepoints attach: nearly all are such. A `read` or `pread` whose registers tell its range, of
 * which this is the first look-up and after which no page can be added to it, by a thread of which nothing waits to be told
 * apart (calls.h). It is counted at once, and beside the counters: to these the tick adds what it settles for the thread,
 * so that each addition to them is atomic, which costs more than all else here.
 */
#ifndef CACHETOP_QUICK_H
#define CACHETOP_QUICK_H

#include "calls.h"

/* What a read requests: where it begins, and how many bytes. False: another call, or there is no telling. */
static __always_inline bool quick_range(struct task_struct *task, u64 *pos, u64 *count)
{
	struct pt_regs *regs;
	struct file *file;
	u64 call;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER) || of_other_table(task))
		return false;
	regs = regs_seen(task);
	call = regs->CALL_NUMBER;
	if (call == NR_pread64) {
		*pos = regs->CALL_ARG3;
	} else if (call == NR_read) {
		file = file_of(regs->CALL_ARG0);
		if (!file)
			return false;
		*pos = bpf_core_cast(file, struct file)->f_pos;
	} else {
		return false;
	}
	*count = regs->CALL_ARG2;
	return *count && *count <= MAX_RW_COUNT;
}

/* mm_filemap_get_pages. False: another read than that, and nothing has changed. */
static __always_inline bool quick_read(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct address_space *m = (void *)ctx[0];
	u64 index = ctx[1], last = ctx[2], pos, count, size, pages, mapping;
	struct row *row = row_at_hand(task);
	struct file_row *f = 0;
	struct call *c;

	if (!ready || !row || !row->beside.own.idle)
		return false;
	if (!quick_range(task, &pos, &count))
		return false;
	if (pos >> PAGE_SHIFT != index || (pos + count - 1) >> PAGE_SHIFT != last)
		return false;
	size = m->host->i_size;
	if (pos >= size)
		return false;
	if (count > size - pos)
		count = size - pos;
	pages = ((pos + count - 1) >> PAGE_SHIFT) - index + 1;
	/* One page, or a file that is cached as a whole: see on_get_pages. */
	if (pages > 1 && m->nrpages < pages_in(size))
		return false;
	mapping = number_of(row, m);
	if (*(volatile u64 *)filter_slot(mapping))
		return false;
	if (with_files) {
		f = file_again(row, m, mapping);
		if (!f)
			return false;
	}
	if (index != last) {
		/* It goes on: see there, too. */
		c = call_at(row->call - 1);
		if (!c)
			return false;
		c->mapping = mapping;
		c->syscr = task->ioac.syscr;
		c->last = last;
		c->end = index + pages - 1;
		c->index = index;
	}
	file_covers(f, pos, count);
	file_read(f, count, pages, 0, 0);
	row->beside.own.calls++;
	row->beside.own.bytes += count;
	row->beside.own.hits += pages;
	mark_group(row, ROW_GROUP(C_READ_HITS));
	touch_read(row, mapping, index, index + pages - 1, count, 0);
	return true;
}

#endif
