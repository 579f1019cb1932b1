/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What a plain request (plain.h) was, once it has ended: counted by its thread, or only told by the tick. */
#ifndef CACHETOP_SETTLE_H
#define CACHETOP_SETTLE_H

#include "read.h"

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
	if (row->beside.looked.mark == row->plain_mark)
		return 0;
	/* Put away since the tick has looked: it is read once more. */
	if (f && f->made == row->plain_file_made && f->state == FILE_ENDED)
		return f;
	count_one(C_LOST_FILES);
	return 0;
}

/* For its file before for its thread: see file_count. Who calls this or the next one marks the row. */
static __always_inline void count_plain_read(struct row *row, struct file_row *f, u64 bytes, u64 requested)
{
	u64 pages = pages_of(row->plain_pos, bytes), ahead = ahead_of(row, pages, bytes, requested);

	file_read(f, bytes, pages - ahead, ahead, 0);
	row->v[C_READ_CALLS]++;
	row->v[C_READ_BYTES] += bytes;
	row->v[C_READ_HITS] += pages - ahead;
	if (unlikely(ahead))
		row->v[C_READ_AHEAD_HITS] += ahead;
}

static __always_inline void count_plain_write(struct row *row, struct file_row *f, u64 bytes)
{
	file_count(f, FC_WRITE_HITS, pages_of(row->plain_pos, bytes));
	row->v[C_WRITE_BYTES] += bytes;
	row->v[C_WRITE_HITS] += pages_of(row->plain_pos, bytes);
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
		/* All that it asked for had been read ahead: what it brought in itself went before it was used. */
		if (row->plain_ahead && o->missed && !is_metadata((void *)row->plain_mapping))
			count_nobodys(C_PREFETCH_WASTED, o->missed);
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
	mark_group(row, ROW_GROUP(writes ? C_WRITE_HITS : C_READ_HITS));
}

__noinline int settle_plain_of(u32 number, u32 gone)
{
	struct row *row = row_at(number);

	if (with_plain && row)
		count_ended(row, gone);
	return 0;
}

/* What the last request of a thread has delivered, which nobody has counted. The thread may go on meanwhile. */
static __always_inline void look_at_plain(struct row *row)
{
	struct task_struct *task;
	struct file_row *f;
	struct thread *t;
	struct outcome o = {};
	u64 mark, bytes, calls, chars, ahead;
	u32 depth, writes;

	mark = *(volatile u64 *)&row->plain_mark;
	bytes = *(volatile u64 *)&row->plain_bytes;
	writes = *(volatile u16 *)&row->plain_writes;
	if (!bytes || row->beside.looked.mark == mark || mark & 1 || row->plain_framed == PLAIN_NOTHING)
		return;
	task = bpf_core_cast((void *)row->plain_task, struct task_struct);
	if (task->start_time != row->began)
		return; /* it is gone, and somebody else is in its place */
	calls = calls_ended(task, writes) - row->plain_calls;
	chars = chars_moved(task, writes) - row->plain_chars;
	bytes = plain_delivered_at_least(bytes, calls, chars);
	if (!calls || !bytes)
		return;
	t = thread_of(row);
	if (row->plain_framed && t)
		plain_outcome(row, t, frame_of_ended(row, t, &depth), bytes, &o);
	else
		o.hits = pages_of(row->plain_pos, bytes);
	ahead = writes ? 0 : ahead_of(row, o.hits, 0, 0);
	barrier();
	if (*(volatile u64 *)&row->plain_mark != mark || row->state != ROW_LIVE || o.surplus || o.order)
		return;
	row->beside.looked.bytes = bytes;
	row->beside.looked.hits = o.hits - ahead;
	row->beside.looked.ahead = ahead;
	row->beside.looked.missed = o.missed;
	row->beside.looked.inflight = o.inflight;
	row->beside.looked.writes = writes;
	barrier();
	row->beside.looked.mark = mark;
	mark_group(row, ROW_GROUP(writes ? C_WRITE_HITS : C_READ_HITS));
	f = with_files ? file_at(row->plain_file) : 0;
	if (f && f->made == row->plain_file_made)
		f->touched = 1;
}

#endif
