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
 * but the thread itself ever counts a read or a write in its row. What is seen this way never shrinks: nothing while the call goes on, then
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

#include "hooks/attach.h"
#include "present.h"
#include "settle.h"

#define IOCB_HIPRI 0x01 /* as RWF_HIPRI; part of what user space can ask for */
#define IOCB_NOWAIT 0x08 /* as RWF_NOWAIT */
#define IOCB_NOIO (1 << 20) /* gfs2: tried so first */

/*
 * Whether it lies on the thread's stack: it does where the thread waits for the request, and does not where somebody else will hear of
 * its end (ki_complete). To ask that, one word less is loaded of an address. Where stacks are larger (KASAN), nothing is plain.
 */
static __always_inline bool is_on_stack(struct task_struct *task, u64 iocb)
{
	return iocb - (u64)task->stack < STACK_SIZE;
}

/* Whether nothing about the request needs a hook at its return. */
static __always_inline bool is_plain(struct row *row, struct task_struct *task, struct kiocb *iocb,
				     struct file *file, struct iov_iter *iter, u64 rare)
{
	rare |= *(u64 *)&row->depth | row->writing; /* and `waited` */
	rare |= iocb->ki_flags & (IOCB_HIPRI | IOCB_NOWAIT | IOCB_NOIO | IOCB_DONTCACHE);
	rare |= file->f_flags & O_DIRECT;
	rare |= task->flags & (PF_KTHREAD | PF_IO_WORKER);
	rare |= iter->iter_type ^ bpf_core_enum_value(enum iter_type, ITER_UBUF);
	return !rare;
}

/* Counts the one before, which was of the same kind, and leaves what this one is. `ahead`: 0 or 1. */
static __always_inline void begin_plain(struct row *row, struct task_struct *task, u64 iter, const void *mapping,
					struct file_row *file, u64 pos, u64 next, bool writes, u64 ahead)
{
	u64 chars = *(volatile u64 *)(writes ? &task->ioac.wchar : &task->ioac.rchar);
	u64 calls = *(volatile u64 *)(writes ? &task->ioac.syscw : &task->ioac.syscr);
	u64 mark = row->plain_mark, bytes = row->plain_bytes, requested = bytes;
	struct file_row *f = file && bytes ? file_of_plain(row) : 0;

	*(volatile u64 *)&row->plain_mark = mark + 1;
	barrier();
	if (writes)
		row->window.mapping = 0; /* see enter_write */
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
	*(const void *volatile *)&row->plain_mapping = mapping;
	row->plain_iter = iter;
	row->plain_chars = chars;
	row->plain_calls = calls;
	row->plain_kind = (u64)writes << 32 | ahead << 48;
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

/* A read that is plain if its pages are there. */
struct unsure {
	u64 mapping;
	u64 iter;
	u64 pos;
	u64 next;
	bool whole; /* all of the file's were there a moment ago */
};

/* What takes calls to say stands apart: it would have what the others know put on the stack. */
static __noinline int begin_unsure(struct row *row, struct unsure *u)
{
	struct file_row *file = with_files ? file_at(row->file) : 0;
	enum in_ledger found;

	if (!u->next)
		return false;
	found = look_at_pages(row, u->mapping, u->pos >> PAGE_SHIFT, (u->pos + u->next - 1) >> PAGE_SHIFT,
			      u->whole);
	if (found == NEITHER)
		return false;
	begin_plain(row, bpf_get_current_task_btf(), u->iter, (void *)u->mapping, file, u->pos, u->next, false,
		    found == ALL_TAKEN);
	return true;
}

/*
 * filemap_read(iocb, iter, already) at its entry. True: a plain one, which needs no hook at its return. Nothing is
 * changed where it is not. `files`: they are asked for; then it is one of the file that the thread has used last.
 */
static __always_inline bool enter_plain_read(struct row *row, struct task_struct *task, struct pt_regs *ctx,
					     bool files)
{
	struct kiocb *iocb = ARGUMENT(ctx, 1, struct kiocb);
	struct iov_iter *iter = ARGUMENT(ctx, 2, struct iov_iter);
	struct file *f = iocb->ki_filp;
	struct address_space *m = f->f_mapping;
	struct file_row *file = 0;
	u64 size, pos, next, cached, raised;

	if (!counts_calls(task) || !is_plain(row, task, iocb, f, iter, PT_REGS_PARM3(ctx)) ||
	    !is_on_stack(task, PT_REGS_PARM1(ctx)))
		return false;
	size = m->host->i_size;
	pos = iocb->ki_pos;
	if (pos >= size)
		return false;
	next = iter->count;
	if (next > size - pos)
		next = size - pos;
	if (with_touches && chooses_some(number_of(row, m), pos >> PAGE_SHIFT, (pos + next - 1) >> PAGE_SHIFT))
		return false;
	cached = m->nrpages;
	barrier(); /* the ledger is asked after the pages: see present.h */
	raised = *(volatile u64 *)filter_slot(low_half(m));
	if (files) {
		file = file_again(row, m, number_of(row, m));
		if (!file)
			return false;
	}
	if (unlikely(cached < pages_in(size) || raised)) {
		struct unsure u = {.mapping = number_of(row, m), .iter = PT_REGS_PARM2(ctx), .pos = pos};

		u.next = next;
		u.whole = cached >= pages_in(size);
		return begin_unsure(row, &u);
	}
	begin_plain(row, task, PT_REGS_PARM2(ctx), m, file, pos, next, false, 0);
	return true;
}

/* The same of generic_perform_write and iomap_file_buffered_write: (iocb, iter, …), checked and locked. */
static __always_inline bool enter_plain_write(struct row *row, struct task_struct *task, struct pt_regs *ctx,
					      bool files)
{
	struct kiocb *iocb = ARGUMENT(ctx, 1, struct kiocb);
	struct iov_iter *iter = ARGUMENT(ctx, 2, struct iov_iter);
	struct file *f = iocb->ki_filp;
	struct address_space *m = f->f_mapping;
	struct file_row *file = 0;
	u64 size, pos, next;

	if (!counts_calls(task) || !is_plain(row, task, iocb, f, iter, 0) ||
	    !is_on_stack(task, PT_REGS_PARM1(ctx)))
		return false;
	size = m->host->i_size;
	pos = iocb->ki_pos;
	next = iter->count;
	if (!next || pos + next > size || m->nrpages < pages_in(size))
		return false;
	if (files) {
		file = file_again(row, m, number_of(row, m));
		if (!file)
			return false;
	}
	/* All of it is there, and will be taken but for a bad buffer. */
	if (unlikely(*(volatile u64 *)filter_slot(low_half(m))))
		used_by_write(number_of(row, m), pos >> PAGE_SHIFT, pages_in(pos + next) - (pos >> PAGE_SHIFT));
	begin_plain(row, task, PT_REGS_PARM2(ctx), m, file, pos, next, true, 0);
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
