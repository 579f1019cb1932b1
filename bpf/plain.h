/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Plain reads: what nearly all are, of a file that is cached as a whole, by one thread into one buffer. On kernels where
 * a hook at the return is most of what a read costs, they have one at the entry only. That leaves in the thread's row
 * what the read will deliver, and what the kernel had counted of the thread by then: `ioac.rchar` bytes in `ioac.syscr`
 * calls. Each call that has ended has raised these: if it is the last one, by what was delivered; if others came after it,
 * it is taken for what was requested. A bad buffer is seen (on_bad_address); a truncation at that moment or a device that
 * fails while another call follows before anybody looks is not.
 *
 * It is counted at the thread's next read, before anything else looks at the thread's frames, and when its row ends. Of a
 * thread that reads no more, the tick says what its last read has delivered (look_plain), and changes no counter: so nobody
 * but the thread itself ever counts in its row. What is seen this way never shrinks: nothing while the call goes on, then
 * what was delivered, then that or what was requested.
 *
 * A read in which something happened (a page was added or waited for) has a frame, which says what that was. The ledger is
 * not asked: nothing of the file was in it when the read began. What the read added and did not deliver is prefetched, and
 * counts as a hit when it is used.
 */
#ifndef CACHETOP_PLAIN_H
#define CACHETOP_PLAIN_H

#include "read.h"

#define IOCB_HIPRI 0x01 /* as RWF_HIPRI; part of what user space can ask for */
#define IOCB_NOWAIT 0x08 /* as RWF_NOWAIT */

/* `plain_framed` of a read that has a frame, and of one that delivers nothing. */
enum { PLAIN_FRAMED = 1, PLAIN_NOTHING };

/* What a plain read was. */
struct outcome {
	u64 hits;
	u64 missed; /* pages that it added and delivered, as far as there are so many */
	u64 surplus; /* that it added only */
	u64 inflight;
	u64 order; /* that were added, went, and were added again */
};

static __always_inline void count_plain(struct row *row, u64 pos, u64 bytes)
{
	row->v[C_READ_CALLS]++;
	row->v[C_READ_BYTES] += bytes;
	row->v[C_READ_HITS] += pages_in(pos + bytes) - (pos >> PAGE_SHIFT);
	row->touched[ROW_GROUP(C_READ_HITS)] = 1;
}

/* Its frame; the depth below it in *depth. Null if the stack has begun anew (push). */
static __always_inline struct frame *frame_of_ended(struct row *row, struct thread *t, u32 *depth)
{
	u32 i;

	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f = frame_at(t, i);

		if (i >= row->depth)
			return 0;
		if (f->kind == F_READ && f->key == PLAIN_KEY) {
			*depth = i;
			return f;
		}
	}
	return 0;
}

/* Of a read that something happened in and that has delivered `bytes`. */
static __always_inline void plain_outcome(struct row *row, struct thread *t, struct frame *f, u64 bytes,
					  struct outcome *o)
{
	u64 pos = row->plain_pos, first = pos >> PAGE_SHIFT, end = pages_in(pos + bytes);
	u64 touched = bytes ? end - first : 0;

	o->missed = f ? f->added : 0;
	o->surplus = o->missed;
	o->inflight = 0;
	o->order = 0;
	if (bytes) {
		o->surplus = f ? beyond(f, end - 1) : 0;
		if (wake_page_at && row->waited && t->flight.mapping == row->plain_mapping &&
		    t->flight.syscr == row->plain_syscr)
			o->inflight = waited_in(&t->flight, first, end - 1);
	}
	o->missed -= o->surplus;
	if (o->missed > touched) {
		o->order = o->missed - touched;
		o->missed = touched;
	}
	o->hits = touched - o->missed;
}

static __noinline void settle_plain(struct row *row, bool gone)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(row);
	u64 bytes = row->plain_bytes;
	struct outcome o;
	u32 depth = 0;

	if (row->plain_framed == PLAIN_NOTHING)
		bytes = 0;
	else if (!gone)
		bytes = plain_delivered(bytes, calls_ended(task) - row->plain_syscr,
					chars_read(task) - row->plain_rchar);
	row->plain_mark++;
	barrier();
	row->plain_bytes = 0;
	if (!row->plain_framed || !t) {
		if (bytes)
			count_plain(row, row->plain_pos, bytes);
		goto out;
	}
	row->plain_framed = 0;
	plain_outcome(row, t, frame_of_ended(row, t, &depth), bytes, &o);
	/* What stands above it has ended as well. */
	row->depth = depth;
	row->waited = 0;
	if (bytes) {
		row->v[C_READ_CALLS]++;
		row->v[C_READ_BYTES] += bytes;
		row->v[C_READ_HITS] += o.hits;
		row->v[C_READ_MISSED_CALLS] += !!o.missed;
		row->v[C_READ_MISSES] += o.missed;
		row->v[C_MISS_FILLS] += o.missed;
		row->v[C_INFLIGHT] += o.inflight;
		row->v[C_LOST_ORDER] += o.order;
	}
	row->v[C_PREFETCHED] += o.surplus;
	*(u32 *)row->touched = -1;
out:
	barrier();
	row->plain_mark++;
	RETURN_NOTHING();
}

/*
 * filemap_read(iocb, iter, already) at its entry. True: a plain one, which needs no hook at its return. Nothing is
 * changed where it is not.
 */
static __always_inline bool enter_plain(struct row *row, struct kiocb *iocb, struct iov_iter *iter, u64 already)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = iocb->ki_filp;
	struct address_space *m = file->f_mapping;
	u64 mapping = number_of(row, m), size = m->host->i_size, pos = iocb->ki_pos;
	u64 rare, mark, rchar, syscr, bytes = row->plain_bytes, next = iter->count;

	if (!bpf_core_field_exists(task->ioac.syscr) || !bpf_core_field_exists(task->ioac.rchar))
		return false; /* CONFIG_TASK_XACCT */
	rare = already | *(u64 *)&row->depth | row->writing; /* and `waited` */
	rare |= iocb->ki_flags & (IOCB_HIPRI | IOCB_NOWAIT | IOCB_DONTCACHE);
	rare |= file->f_flags & O_DIRECT;
	rare |= task->flags & (PF_KTHREAD | PF_IO_WORKER);
	rare |= iter->iter_type ^ bpf_core_enum_value(enum iter_type, ITER_UBUF);
	rare |= *(volatile u64 *)filter_slot(mapping);
	if (unlikely(rare) || iocb->ki_complete || pos >= size || m->nrpages < pages_in(size))
		return false;
	if (next > size - pos)
		next = size - pos;
	if (unlikely(!next))
		return false;
	rchar = chars_read(task);
	syscr = calls_ended(task);
	mark = row->plain_mark;
	*(volatile u64 *)&row->plain_mark = mark + 1;
	barrier();
	if (likely(bytes)) {
		bytes = plain_delivered(bytes, syscr - row->plain_syscr, rchar - row->plain_rchar);
		if (likely(bytes))
			count_plain(row, row->plain_pos, bytes);
	}
	row->plain_bytes = next;
	row->plain_pos = pos;
	row->plain_mapping = mapping;
	row->plain_iter = number_of(row, iter);
	row->plain_rchar = rchar;
	row->plain_syscr = syscr;
	row->plain_framed = 0;
	barrier();
	*(volatile u64 *)&row->plain_mark = mark + 2;
	row->touched[ROW_GROUP(C_READ_HITS)] = 1;
	return true;
}

/*
 * fixup_exception: the running thread has touched what is not there. In a read that is to be counted, and in its buffer,
 * the read ends here: what lies before has been delivered. The second time is for bytes that the first left.
 */
static __always_inline void on_bad_address(u64 address)
{
	struct row *row = own_row(false);
	struct iov_iter *iter;
	u64 delivered;

	if (!row || !row->plain_bytes || plain_has_ended(row))
		return;
	iter = bpf_core_cast((void *)row->plain_iter, struct iov_iter);
	delivered = address - word_at(&iter->ubuf); /* it has begun at its beginning: see enter_plain */
	if (delivered > row->plain_bytes)
		return;
	row->plain_mark++;
	barrier();
	if (delivered || !row->plain_framed)
		row->plain_bytes = delivered;
	else
		row->plain_framed = PLAIN_NOTHING; /* but what it has added is to be counted */
	barrier();
	row->plain_mark++;
}

/* Rows that the monitor reads: as many as it has mapped. */
u32 rows_read = 0;

/* What the last read of a thread has delivered, which nobody has counted. The thread may go on meanwhile. */
static long look_at_plain(u32 n, void *unused)
{
	struct task_struct *task;
	struct row *row = row_at(n);
	struct thread *t;
	struct outcome o = {};
	u64 mark, bytes, calls, chars;
	u32 depth;

	if (!row)
		return 1;
	mark = *(volatile u64 *)&row->plain_mark;
	bytes = *(volatile u64 *)&row->plain_bytes;
	if (!bytes || row->looked_mark == mark || mark & 1 || row->plain_framed == PLAIN_NOTHING || !row->task)
		return 0;
	task = bpf_core_cast((void *)row->task, struct task_struct);
	calls = calls_ended(task) - row->plain_syscr;
	chars = chars_read(task) - row->plain_rchar;
	bytes = plain_delivered(bytes, calls, chars);
	if (!calls || !bytes)
		return 0;
	t = thread_of(row);
	if (row->plain_framed && t)
		plain_outcome(row, t, frame_of_ended(row, t, &depth), bytes, &o);
	else
		o.hits = pages_in(row->plain_pos + bytes) - (row->plain_pos >> PAGE_SHIFT);
	barrier();
	if (*(volatile u64 *)&row->plain_mark != mark || row->state != ROW_LIVE || o.surplus || o.order)
		return 0;
	row->looked_bytes = bytes;
	row->looked_hits = o.hits;
	row->looked_missed = o.missed;
	row->looked_inflight = o.inflight;
	barrier();
	row->looked_mark = mark;
	row->touched[ROW_GROUP(C_READ_HITS)] = 1;
	return 0;
}

#endif
