/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Plain requests: what nearly all are, reads of pages that are there, and writes to a file that is cached as a whole, by one
 * thread from or into one buffer. On kernels where a hook at the return is most of what a request costs, they have one at the
 * entry only. That leaves in the thread's row what the request will deliver, and what the kernel had counted of the thread
 * by then: `ioac.rchar` bytes in `ioac.syscr` calls, of writes `wchar` and `syscw`. Each call that has ended has raised
 * these: if it is the last one of its kind, by what was delivered; if others came after it, it is taken for what was
 * requested. A bad buffer is seen (on_bad_address); a truncation at that moment, or a device that fails or is full, while
 * another call follows before anybody looks is not.
 *
 * It is counted at the thread's next one, before anything else looks at the thread's frames, and when its row ends. Of a
 * thread that has no more, the tick says what its last one has delivered (look_plain), and changes no counter: so nobody
 * but the thread itself ever counts in its row. What is seen this way never shrinks: nothing while the call goes on, then
 * what was delivered, then that or what was requested.
 *
 * A request in which something happened (a page was added or waited for) has a frame, which says what that was. When a read begins
 * its pages are there, since the file is cached as a whole, or since that was looked at (present.h); then the ledger is asked, in
 * which there is none of them, or all, which are taken out. What is written is taken out as it becomes dirty. What a read added
 * and did not deliver is prefetched, and counts as a hit when it is used; so does what it took out and did not deliver, but for
 * a bad buffer.
 */
#ifndef CACHETOP_PLAIN_H
#define CACHETOP_PLAIN_H

#include "present.h"
#include "settle.h"

#define IOCB_HIPRI 0x01 /* as RWF_HIPRI; part of what user space can ask for */
#define IOCB_NOWAIT 0x08 /* as RWF_NOWAIT */
#define IOCB_NOIO (1 << 20) /* gfs2: tried so first */

/* Whether nothing about the request needs a hook at its return. */
static __always_inline bool is_plain(struct row *row, struct kiocb *iocb, struct iov_iter *iter, u64 rare)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!counts_calls(task))
		return false;
	rare |= *(u64 *)&row->depth | row->writing; /* and `waited` */
	rare |= iocb->ki_flags & (IOCB_HIPRI | IOCB_NOWAIT | IOCB_NOIO | IOCB_DONTCACHE);
	rare |= iocb->ki_filp->f_flags & O_DIRECT;
	rare |= task->flags & (PF_KTHREAD | PF_IO_WORKER);
	rare |= iter->iter_type ^ bpf_core_enum_value(enum iter_type, ITER_UBUF);
	return !rare && !iocb->ki_complete;
}

/* Counts the one before, which was of the same kind, and leaves what this one is. */
static __always_inline void begin_plain(struct row *row, struct iov_iter *iter, u64 mapping,
					struct file_row *file, u64 pos, u64 next, bool writes, bool ahead)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 chars = chars_moved(task, writes), calls = calls_ended(task, writes);
	u64 mark = row->plain_mark, bytes = row->plain_bytes, requested = bytes;
	struct file_row *f = file && bytes ? file_of_plain(row) : 0;

	*(volatile u64 *)&row->plain_mark = mark + 1;
	barrier();
	if (likely(bytes)) {
		bytes = plain_delivered(bytes, calls - row->plain_calls, chars - row->plain_chars);
		if (unlikely(!bytes))
			;
		else if (writes)
			count_plain_write(row, f, bytes);
		else
			count_plain_read(row, f, bytes, requested);
	}
	if (file) {
		row->plain_file = row->file;
		row->plain_file_made = file->made;
	}
	row->plain_bytes = next;
	row->plain_pos = pos;
	row->plain_mapping = mapping;
	row->plain_iter = number_of(row, iter);
	row->plain_chars = chars;
	row->plain_calls = calls;
	row->plain_task = bpf_get_current_task();
	row->plain_framed = 0;
	row->plain_writes = writes;
	row->plain_ahead = ahead;
	barrier();
	*(volatile u64 *)&row->plain_mark = mark + 2;
	mark_group(row, ROW_GROUP(writes ? C_WRITE_HITS : C_READ_HITS));
}

/*
 * Before a request that may be plain: one of the other kind is counted. False: it is inside one, or is a write that is tried
 * again. Asked before anything is loaded, since what outlives a call is saved at entry and return.
 */
static __always_inline bool may_be_plain(struct row *row, bool writes)
{
	if (!writes && likely(!row->plain_writes))
		return true;
	if (!row->plain_bytes)
		goto other;
	if (!plain_has_ended(row))
		return false;
	if (row->plain_writes == writes)
		return true;
	settle_plain(row, false);
other:
	row->plain_writes = writes;
	return true;
}

/*
 * filemap_read(iocb, iter, already) at its entry. True: a plain one, which needs no hook at its return. Nothing is
 * changed where it is not. `files`: they are asked for; then it is one of the file that the thread has used last.
 */
static __always_inline bool enter_plain_read(struct row *row, struct kiocb *iocb, struct iov_iter *iter,
					     u64 already, bool files)
{
	struct address_space *m = iocb->ki_filp->f_mapping;
	struct file_row *file = 0;
	u64 mapping = number_of(row, m), size = m->host->i_size, pos = iocb->ki_pos, next = iter->count, last;
	bool whole, raised, ahead = false;
	enum in_ledger found;

	if (!is_plain(row, iocb, iter, already))
		return false;
	if (pos >= size)
		return false;
	whole = m->nrpages >= pages_in(size);
	barrier(); /* the ledger is asked after the pages: see present.h */
	raised = *(volatile u64 *)filter_slot(mapping);
	if (unlikely(!whole) && !raised && next > FEW << PAGE_SHIFT)
		return false;
	if (next > size - pos)
		next = size - pos;
	if (unlikely(!next))
		return false;
	last = (pos + next - 1) >> PAGE_SHIFT;
	if (touches_some(mapping, pos >> PAGE_SHIFT, last))
		return false;
	if (files) {
		file = file_again(row, m, mapping);
		if (!file)
			return false;
	}
	if (unlikely(raised))
		ahead = ledger_take_all(row, mapping, pos >> PAGE_SHIFT, last);
	if (unlikely(!whole) && !ahead) {
		if (!few_present(mapping, pos >> PAGE_SHIFT, last))
			return false;
		barrier();
		raised = *(volatile u64 *)filter_slot(mapping);
	}
	if (unlikely(raised) && !ahead) {
		found = find_in_ledger(row, mapping, pos >> PAGE_SHIFT, last);
		if (found == NEITHER)
			return false;
		ahead = found == ALL_TAKEN;
	}
	begin_plain(row, iter, mapping, file, pos, next, false, ahead);
	return true;
}

/* The same of generic_perform_write and iomap_file_buffered_write: (iocb, iter, …), checked and locked. */
static __always_inline bool enter_plain_write(struct row *row, struct kiocb *iocb, struct iov_iter *iter,
					      bool files)
{
	struct address_space *m = iocb->ki_filp->f_mapping;
	struct file_row *file = 0;
	u64 size = m->host->i_size, pos = iocb->ki_pos, next = iter->count;

	if (!is_plain(row, iocb, iter, 0))
		return false;
	if (!next || pos + next > size || m->nrpages < pages_in(size))
		return false;
	if (files) {
		file = file_again(row, m, number_of(row, m));
		if (!file)
			return false;
	}
	begin_plain(row, iter, number_of(row, m), file, pos, next, true, false);
	return true;
}

/* A write that is not plain begins where one that was has not ended: inside it, or as another try of the same request. */
static __always_inline void begin_inside_plain(struct row *row, struct thread *t, u64 iter)
{
	if (row->plain_iter != iter) {
		frame_of_plain(row, t);
		return;
	}
	/* The first try took nothing; what it added is there for the second. */
	row->plain_mark++;
	barrier();
	if (row->plain_framed)
		row->plain_framed = PLAIN_NOTHING;
	else
		row->plain_bytes = 0;
	barrier();
	row->plain_mark++;
}

/* A request that is not plain begins. */
static __always_inline void begin_after_plain(struct row *row, u64 iter)
{
	struct thread *t;

	if (!row->plain_bytes)
		return;
	/*
	 * It goes on where a file system reads from another's file in read-ahead, which a read that finds its pages may begin,
	 * too. A read that is tried again with the same buffer has delivered what it could.
	 */
	if (plain_has_ended(row) || (!(row->plain_writes | row->plain_ahead) && row->plain_iter == iter)) {
		settle_plain(row, false);
		return;
	}
	t = thread_of(row);
	if (t)
		begin_inside_plain(row, t, iter);
}

/* Pages that a read took out of the ledger and does not deliver. */
static __always_inline void put_back(struct row *row, u64 delivered)
{
	u64 pos = row->plain_pos, first = delivered ? pages_in(pos + delivered) : pos >> PAGE_SHIFT;

	ledger_set(row->plain_mapping, first, (pos + row->plain_bytes - 1) >> PAGE_SHIFT, BITS);
}

/*
 * fixup_exception: the running thread has touched what is not there. In a request that is to be counted, and in its buffer,
 * that ends here: what lies before has been delivered. The second time is for bytes that the first left. A write first
 * copies what need not be brought in; what must be is tried again.
 */
static __always_inline void on_bad_address(u64 address)
{
	struct row *row = own_row(false);
	struct iov_iter *iter;
	u64 delivered;

	if (!row || !row->plain_bytes || plain_has_ended(row))
		return;
	if (row->plain_writes && bpf_get_current_task_btf()->pagefault_disabled)
		return;
	iter = bpf_core_cast((void *)row->plain_iter, struct iov_iter);
	delivered = address - word_at(&iter->ubuf); /* it has begun at its beginning: see enter_plain */
	if (delivered > row->plain_bytes)
		return;
	if (row->plain_ahead && !row->plain_writes)
		put_back(row, delivered);
	row->plain_mark++;
	barrier();
	if (delivered || !row->plain_framed)
		row->plain_bytes = delivered;
	else
		row->plain_framed = PLAIN_NOTHING; /* but what it has added is to be counted */
	barrier();
	row->plain_mark++;
}

#endif
