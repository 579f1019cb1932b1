/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Plain requests: what nearly all are, reads of a file that is cached as a whole, and writes to what is there of one, by one
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
 * A request in which something happened (a page was added or waited for) has a frame, which says what that was. The ledger
 * is asked when a read begins: nothing of the file is in it, or all pages that it reads are, which therefore are there, and are taken
 * out. What is written is taken out as it becomes dirty. What a read added and did not deliver is prefetched, and counts as a hit
 * when it is used; so does what it took out and did not deliver, but for a bad buffer.
 */
#ifndef CACHETOP_PLAIN_H
#define CACHETOP_PLAIN_H

#include "read.h"

#define IOCB_HIPRI 0x01 /* as RWF_HIPRI; part of what user space can ask for */
#define IOCB_NOWAIT 0x08 /* as RWF_NOWAIT */
#define IOCB_NOIO (1 << 20) /* gfs2: tried so first */

/* What a plain request was. */
struct outcome {
	u64 hits; /* of these, see ahead_of */
	u64 missed; /* pages that it added and delivered, as far as there are so many */
	u64 surplus; /* that it added only */
	u64 inflight;
	u64 order; /* that were added, went, and were added again */
};

static __always_inline u64 pages_of(u64 pos, u64 bytes)
{
	return pages_in(pos + bytes) - (pos >> PAGE_SHIFT);
}

/* Of the pages in which a plain read found what it delivered, those whose first use it was: what is behind its request is not. */
static __always_inline u64 ahead_of(struct row *row, u64 hits, u64 bytes, u64 requested)
{
	u64 more;

	if (likely(!row->plain_ahead))
		return 0;
	more = bytes > requested ? pages_of(row->plain_pos, bytes) - pages_of(row->plain_pos, requested) : 0;
	return hits > more ? hits - more : 0;
}

/*
 * The row of the file that a request to be counted is of. What the tick has looked at is told already, also where the file's
 * row was taken back since.
 */
static __always_inline struct file_row *file_of_plain(struct row *row)
{
	struct file_row *f;

	if (!with_files)
		return 0;
	f = file_at(row->plain_file);
	if (likely(f && f->made == row->plain_file_made && f->mapping))
		return f;
	if (row->looked_mark == row->plain_mark)
		return 0;
	/* Put away since the tick has looked: it is read once more. */
	if (f && f->made == row->plain_file_made && f->state == FILE_ENDED)
		return f;
	count_one(C_LOST_FILES);
	return 0;
}

/* For its file before for its thread: see file_count. */
static __always_inline void count_plain_read(struct row *row, struct file_row *f, u64 bytes, u64 requested)
{
	u64 pages = pages_of(row->plain_pos, bytes), ahead = ahead_of(row, pages, bytes, requested);

	file_read(f, bytes, pages - ahead, ahead, 0);
	row->v[C_READ_CALLS]++;
	row->v[C_READ_BYTES] += bytes;
	row->v[C_READ_HITS] += pages - ahead;
	if (unlikely(ahead))
		row->v[C_READ_AHEAD_HITS] += ahead;
	row->touched[ROW_GROUP(C_READ_HITS)] = 1;
}

static __always_inline void count_plain_write(struct row *row, struct file_row *f, u64 bytes)
{
	file_count(f, FC_WRITE_HITS, pages_of(row->plain_pos, bytes));
	row->v[C_WRITE_BYTES] += bytes;
	row->v[C_WRITE_HITS] += pages_of(row->plain_pos, bytes);
	row->touched[ROW_GROUP(C_WRITE_HITS)] = 1;
}

/* Its frame; the depth below it in *depth. Null if the stack has begun anew (push). */
static __always_inline struct frame *frame_of_ended(struct row *row, struct thread *t, u32 *depth)
{
	u32 i;

	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f = frame_at(t, i);

		if (i >= row->depth)
			return 0;
		if (f->key == PLAIN_KEY) {
			*depth = i;
			return f;
		}
	}
	return 0;
}

/* Of a request that something happened in and that has delivered `bytes`. */
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
		if (wake_page_at && row->waited && !row->plain_writes &&
		    t->flight.mapping == row->plain_mapping && t->flight.syscr == row->plain_calls)
			o->inflight = waited_in(&t->flight, first, end - 1);
	}
	o->missed -= o->surplus;
	if (o->missed > touched) {
		o->order = o->missed - touched;
		o->missed = touched;
	}
	o->hits = touched - o->missed;
}

static __always_inline void count_framed(struct row *row, struct file_row *f, u64 bytes, u64 requested,
					 struct outcome *o)
{
	u64 ahead = row->plain_writes ? 0 : ahead_of(row, o->hits, bytes, requested);

	if (row->plain_writes) {
		file_count(f, FC_WRITE_HITS, o->hits);
		file_count(f, FC_WRITE_MISSES, o->missed);
		row->v[C_WRITE_BYTES] += bytes;
		row->v[C_WRITE_HITS] += o->hits;
		row->v[C_WRITE_MISSES] += o->missed;
		row->v[C_OTHER_FILLS] += o->surplus;
	} else {
		file_read(f, bytes, o->hits - ahead, ahead, o->missed);
		file_count(f, FC_PREFETCHED, o->surplus);
		row->v[C_READ_CALLS] += !!bytes;
		row->v[C_READ_BYTES] += bytes;
		row->v[C_READ_HITS] += o->hits - ahead;
		row->v[C_READ_AHEAD_HITS] += ahead;
		row->v[C_READ_MISSED_CALLS] += !!o->missed;
		row->v[C_READ_MISSES] += o->missed;
		row->v[C_MISS_FILLS] += o->missed + o->order;
		row->v[C_INFLIGHT] += o->inflight;
		row->v[C_PREFETCHED] += o->surplus;
	}
	row->v[C_LOST_ORDER] += o->order;
	*(u32 *)row->touched = -1;
}

static __always_inline void count_ended(struct row *row, bool gone)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(row);
	bool writes = row->plain_writes;
	u64 bytes = row->plain_bytes, requested = bytes;
	struct file_row *f = file_of_plain(row);
	struct outcome o;
	u32 depth = 0;

	if (row->plain_framed == PLAIN_NOTHING)
		bytes = 0;
	else if (!gone)
		bytes = plain_delivered(bytes, calls_ended(task, writes) - row->plain_calls,
					chars_moved(task, writes) - row->plain_chars);
	row->plain_mark++;
	barrier();
	row->plain_bytes = 0;
	if (row->plain_framed && t) {
		plain_outcome(row, t, frame_of_ended(row, t, &depth), bytes, &o);
		/* What stands above it has ended as well. */
		row->depth = depth;
		row->waited = 0;
		count_framed(row, f, bytes, requested, &o);
	} else if (bytes && writes) {
		count_plain_write(row, f, bytes);
	} else if (bytes) {
		count_plain_read(row, f, bytes, requested);
	}
	row->plain_framed = 0;
	barrier();
	row->plain_mark++;
}

__noinline int settle_plain_of(u32 number, u32 gone)
{
	struct row *row = row_at(number);

	if (with_plain && row)
		count_ended(row, gone);
	return 0;
}

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
	row->touched[ROW_GROUP(writes ? C_WRITE_HITS : C_READ_HITS)] = 1;
}

/*
 * Before a request that may be plain: one of the other kind is counted. False: it is inside a write, or is one that is tried
 * again. Asked before anything is loaded, since what outlives a call is saved at entry and return.
 */
static __always_inline bool may_be_plain(struct row *row, bool writes)
{
	if (!writes && likely(!row->plain_writes))
		return true;
	if (!row->plain_bytes)
		goto other;
	if (row->plain_writes && !plain_has_ended(row))
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
	u64 mapping = number_of(row, m), size = m->host->i_size, pos = iocb->ki_pos, next = iter->count;
	bool ahead = *(volatile u64 *)filter_slot(mapping);

	if (!is_plain(row, iocb, iter, already))
		return false;
	if (pos >= size)
		return false;
	if (!ahead && m->nrpages < pages_in(size))
		return false;
	if (next > size - pos)
		next = size - pos;
	if (unlikely(!next))
		return false;
	if (touches_some(mapping, pos >> PAGE_SHIFT, (pos + next - 1) >> PAGE_SHIFT))
		return false;
	if (files) {
		file = file_again(row, m, mapping);
		if (!file)
			return false;
	}
	if (unlikely(ahead) && !ledger_take_all(row, mapping, pos >> PAGE_SHIFT, (pos + next - 1) >> PAGE_SHIFT))
		return false;
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
	/* Of reads it has, since one goes on in no other; but in read-ahead a file system may read from another's file. */
	if (!(row->plain_writes | row->plain_ahead) || plain_has_ended(row)) {
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

/* Rows that the monitor reads: as many as it has mapped. */
u32 rows_read = 0;

/* What the last request of a thread has delivered, which nobody has counted. The thread may go on meanwhile. */
static long look_at_plain(u32 n, void *unused)
{
	struct task_struct *task;
	struct row *row = row_at(n);
	struct file_row *f;
	struct thread *t;
	struct outcome o = {};
	u64 mark, bytes, calls, chars, ahead;
	u32 depth, writes;

	if (!row)
		return 1;
	mark = *(volatile u64 *)&row->plain_mark;
	bytes = *(volatile u64 *)&row->plain_bytes;
	writes = *(volatile u16 *)&row->plain_writes;
	if (!bytes || row->looked_mark == mark || mark & 1 || row->plain_framed == PLAIN_NOTHING)
		return 0;
	task = bpf_core_cast((void *)row->plain_task, struct task_struct);
	calls = calls_ended(task, writes) - row->plain_calls;
	chars = chars_moved(task, writes) - row->plain_chars;
	bytes = plain_delivered_at_least(bytes, calls, chars);
	if (!calls || !bytes)
		return 0;
	t = thread_of(row);
	if (row->plain_framed && t)
		plain_outcome(row, t, frame_of_ended(row, t, &depth), bytes, &o);
	else
		o.hits = pages_of(row->plain_pos, bytes);
	ahead = writes ? 0 : ahead_of(row, o.hits, 0, 0);
	barrier();
	if (*(volatile u64 *)&row->plain_mark != mark || row->state != ROW_LIVE || o.surplus || o.order)
		return 0;
	row->looked_bytes = bytes;
	row->looked_hits = o.hits - ahead;
	row->looked_ahead = ahead;
	row->looked_missed = o.missed;
	row->looked_inflight = o.inflight;
	row->looked_writes = writes;
	barrier();
	row->looked_mark = mark;
	row->touched[writes ? ROW_GROUP(C_WRITE_HITS) : ROW_GROUP(C_READ_HITS)] = 1;
	f = with_files ? file_at(row->plain_file) : 0;
	if (f && f->made == row->plain_file_made)
		f->touched = 1;
	return 0;
}

#endif
