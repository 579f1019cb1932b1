/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reads where functions can be attached. One is counted when it returns: its range ends where the position stands and
 * is as long as what was delivered.
 */
#ifndef CACHETOP_READ_H
#define CACHETOP_READ_H

#include "carry.h"
#include "flight.h"
#include "latency.h"
#include "pages.h"
#include "shmem.h"

#define IOCB_DONTCACHE 0x80 /* as RWF_DONTCACHE in its interface, which cannot change */

/*
 * A read that has returned. The position after it and what it delivered are arguments beside this: the functions that stand on each other
 * at the end of a read have 512 bytes of stack together, and 6.1 counts each by the next 32.
 */
struct ended {
	u64 mapping;
	u64 key;
	u64 async;
};

/* What the request added but was not delivered: a later try of the same request may deliver it. */
static __always_inline void surplus(struct account *a, struct ended *e, u64 pos, u64 first, u64 last, u64 n,
				    enum ledger_mode mode)
{
	if (e->async) {
		struct carry_key k = {.key = e->key, .pos = pos};
		struct carry c = {.mapping = e->mapping, .first = first, .last = last, .added = n};

		if (carry(&k, &c))
			return;
	}
	file_count(file_before(a->row, e->mapping), FC_PREFETCHED, n);
	COUNT(a, C_PREFETCHED, n);
	touch(a->row, e->mapping, first, last, TOUCH_AHEAD);
	if (ready)
		ledger_set(e->mapping, first, last, mode);
}

/* Takes the read's frame off the stack, with what is left above it, into *out. */
static __always_inline bool pop_read(struct row *row, struct account *a, struct ended *e, struct frame *out,
				     enum ledger_mode mode)
{
	struct thread *t = thread_of(row);
	u32 i, depth = row->depth;

	if (!t)
		return false;
	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f;

		if (!depth || depth > MAX_DEPTH)
			return false;
		f = frame_at(t, --depth);
		if (f->kind == F_NAMED ? f->mapping == e->mapping : f->kind == F_READ && f->key == e->key) {
			*out = *f;
			row->depth = depth;
			return true;
		}
		/* Not ours. What was only named has no exit of its own: it was read ahead for something else. */
		if (f->kind != F_NAMED)
			return false;
		if (f->added) {
			file_count(file_before(row, f->mapping), FC_PREFETCHED, f->added);
			COUNT(a, C_PREFETCHED, f->added);
			touch(row, f->mapping, f->added_first, f->added_last, TOUCH_AHEAD);
			if (ready)
				ledger_set(f->mapping, f->added_first, f->added_last, mode);
		}
		row->depth = depth;
	}
	return false;
}

/*
 * Whether what lies behind the last page that was delivered came because a folio has no fewer pages: no later try of the request delivers it, as
 * one that is cut short ends with a folio.
 */
static __always_inline bool shares_smallest(u64 mapping, u64 last, u64 first)
{
	return first <= (last | smallest_of(BPF_CORE_READ((struct address_space *)mapping, flags)));
}

/* A read that added pages, or that others of the same thread stand around. */
static __always_inline void finish_read_body(struct row *row, struct ended *e, u64 end, s64 delivered,
					     enum ledger_mode mode)
{
	u64 pos, first, last, touched, flight, missed, rest, filled, ahead, behind, looked;
	struct account a = {.row = row};
	struct frame f = {};
	struct file_row *file;

	pop_read(row, &a, e, &f, mode);
	if (delivered > 0)
		delivered -= f.already;
	pos = end - (delivered > 0 ? delivered : 0);
	if (e->async && carrying) {
		struct carry_key k = {.key = e->key, .pos = pos};

		if (take_carried(&k, e->mapping, &f))
			count_carried(e->mapping, -1);
	}
	if (delivered <= 0) {
		row->entered = 0;
		if (!with_plain || !row->plain_framed) /* else of the one that is still to be counted */
			row->waited = 0;
		if (f.added)
			surplus(&a, e, pos, f.added_first, f.added_last, f.added, mode);
		return;
	}
	first = pos >> PAGE_SHIFT;
	last = (end - 1) >> PAGE_SHIFT;
	touched = last - first + 1;
	flight = end_flight(row, e->mapping, first, last);
	rest = beyond(&f, last);
	missed = f.added - rest;
	if (rest) {
		if (e->async && shares_smallest(e->mapping, last, f.added_last - rest + 1))
			e->async = false;
		surplus(&a, e, end, f.added_last - rest + 1, f.added_last, rest, mode);
	}
	filled = missed;
	/* Cut short: of these nobody has asked. As they are now: some may have gone since. */
	looked = f.last - f.first < MAX_WALK ? f.last : f.first + MAX_WALK - 1;
	if (f.absent && last < looked) {
		behind = absent_pages(e->mapping, last + 1, looked);
		f.absent = behind < f.absent ? f.absent - behind : 0;
	}
	missed += f.absent;
	ahead = f.dropped + ledger_take_next(row, e->mapping, first, last, mode);
	if (missed + ahead > touched) {
		/* Pages that were added, dropped and added again within the call. */
		COUNT(&a, C_LOST_ORDER, missed + ahead - touched);
		if (missed > touched)
			missed = touched;
		ahead = touched - missed;
	}
	file = file_before(row, e->mapping);
	file_covers(file, pos, delivered);
	file_read(file, delivered, touched - missed - ahead, ahead, missed);
	COUNT(&a, C_READ_CALLS, 1);
	COUNT(&a, C_READ_BYTES, delivered);
	COUNT(&a, C_READ_HITS, touched - missed - ahead);
	if (missed) {
		COUNT(&a, C_READ_MISSED_CALLS, 1);
		COUNT(&a, C_READ_MISSES, missed);
	}
	if (filled)
		COUNT(&a, C_MISS_FILLS, filled);
	if (ahead)
		COUNT(&a, C_READ_AHEAD_HITS, ahead);
	if (flight)
		COUNT(&a, C_INFLIGHT, flight);
	touch_read(row, e->mapping, first, last, delivered, missed + ahead);
	count_latency(row, missed != 0);
}

static __noinline void finish_read(struct row *row, struct ended *e, u64 end, s64 delivered)
{
	finish_read_body(row, e, end, delivered, BITS);
	RETURN_NOTHING();
}

static __noinline void finish_read_pages(struct row *row, struct ended *e, u64 end, s64 delivered)
{
	finish_read_body(row, e, end, delivered, PAGES);
	RETURN_NOTHING();
}

/* A read of one call that added nothing: its pages were there, some of them thanks to read-ahead only. */
static __always_inline void count_present(struct row *row, u64 mapping, u64 end, u64 delivered,
					  struct file_row *file, enum ledger_mode mode)
{
	u64 first = (end - delivered) >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT, hits, ahead;

	ahead = ledger_take_next(row, mapping, first, last, mode);
	hits = last - first + 1 - ahead;
	file_covers(file, end - delivered, delivered);
	file_read(file, delivered, hits, ahead, 0);
	row->v[C_READ_CALLS]++;
	row->v[C_READ_BYTES] += delivered;
	row->v[C_READ_HITS] += hits;
	if (ahead)
		row->v[C_READ_AHEAD_HITS] += ahead;
	count_latency(row, false);
	mark_group(row, ROW_GROUP(C_READ_HITS));
	touch_read(row, mapping, first, last, delivered, ahead);
}

static __noinline void count_present_ahead(struct row *row, u64 mapping, u64 end, u64 delivered,
					   struct file_row *file)
{
	count_present(row, mapping, end, delivered, file, BITS);
	RETURN_NOTHING();
}

/*
 * The end of every read. `delivered` is what this call delivered, `end` the position after it. `iocb` is null for
 * splices.
 */
static __always_inline void exit_read(struct file *opened, void *key, struct kiocb *iocb, u64 end, s64 delivered,
				      enum ledger_mode mode)
{
	struct row *row = own_row(true);
	struct address_space *m = opened->f_mapping;
	struct file_row *file;
	u64 mapping;

	if (!row)
		return; /* why has been counted, or it is the monitor */
	mapping = number_of(row, m);
	file = delivered > 0 ? file_used(row, m, mapping, opened) : 0;
	if (*(u64 *)&row->depth || delivered <= 0 || carrying) {
		struct ended e = {.mapping = mapping};

		e.key = number_of(row, key);
		e.async = iocb && iocb->ki_complete;

		if (mode == BITS)
			finish_read(row, &e, end, delivered);
		else
			finish_read_pages(row, &e, end, delivered);
		return;
	}
	count_present(row, mapping, end, delivered, file, mode);
}

/* A read that must be known from its beginning. */
static __always_inline void begin_read(void *key, struct file *opened, u64 pos, u64 count, u64 already,
				       bool holes)
{
	struct row *row = own_row(true);
	struct address_space *m = opened->f_mapping;
	u64 mapping, size = m->host->i_size;
	struct thread *t = row ? thread_of(row) : 0;
	struct frame *f;

	if (!t)
		return;
	mapping = number_of(row, m);
	file_used(row, m, mapping, opened);
	f = push_frame(row, t, F_READ, mapping, number_of(row, key));
	f->already = already;
	f->pos = pos;
	if (!count || pos >= size)
		return; /* past the end nothing is delivered, and whatever is added is not for this request */
	if (count > size - pos)
		count = size - pos;
	f->first = pos >> PAGE_SHIFT;
	f->last = (pos + count - 1) >> PAGE_SHIFT;
	if (holes)
		f->absent = absent_pages(mapping, f->first, f->last);
}

/* Pages that went while they were read are asked about before they go. */
static __always_inline bool drops_behind(struct kiocb *iocb)
{
	return bpf_core_enum_value_exists(enum pageflags___later, PG_dropbehind___later) &&
	       iocb->ki_flags & IOCB_DONTCACHE;
}

/* filemap_read(iocb, iter, already) where the entry is seen. */
static __always_inline void enter_kiocb(struct kiocb *iocb, struct iov_iter *iter, u64 already)
{
	if (already || drops_behind(iocb))
		begin_read(iocb, iocb->ki_filp, iocb->ki_pos, iter->count, already, false);
}

/* shmem_file_read_iter(iocb, iter): only files with pages that are not there need a frame. */
static __always_inline void enter_shmem(struct kiocb *iocb, struct iov_iter *iter)
{
	struct address_space *m = iocb->ki_filp->f_mapping;

	if (m->nrpages < pages_in(m->host->i_size))
		begin_read(iocb, iocb->ki_filp, iocb->ki_pos, iter->count, 0, true);
}

/* No more than the pipe has room for. */
static __always_inline u64 pipe_room(struct pipe_inode_info *pipe, u64 len)
{
	u32 used = pipe->head - pipe->tail, max = pipe->max_usage;
	u64 room = max > used ? max - used : 1;

	return len > room << PAGE_SHIFT ? room << PAGE_SHIFT : len;
}

static __always_inline void enter_shmem_splice(struct file *in, loff_t *ppos, struct pipe_inode_info *pipe,
					       u64 len)
{
	struct address_space *m = in->f_mapping;
	loff_t pos = 0;

	if (m->nrpages >= pages_in(m->host->i_size))
		return;
	bpf_probe_read_kernel(&pos, sizeof(pos), ppos);
	begin_read(ppos, in, pos, pipe_room(pipe, len), 0, true);
}

/* Where the return does not know the arguments, a splice has a frame, and its key is the cookie. */
static __always_inline u64 enter_splice(struct file *in, loff_t *ppos, struct pipe_inode_info *pipe, u64 len,
					bool holes)
{
	struct address_space *m = in->f_mapping;
	loff_t pos = 0;

	bpf_probe_read_kernel(&pos, sizeof(pos), ppos);
	begin_read(ppos, in, pos, pipe_room(pipe, len), 0, holes && m->nrpages < pages_in(m->host->i_size));
	return (u64)ppos;
}

static __always_inline void leave_splice(u64 key, s64 ret)
{
	struct row *row = own_row(false);
	struct ended e = {.key = key};
	struct thread *t;
	u32 i;

	if (!row || !row->depth)
		return;
	t = thread_of(row);
	if (!t)
		return;
	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f;

		if (i >= row->depth)
			return;
		f = frame_at(t, row->depth - 1 - i);
		if (f->kind == F_READ && f->key == key) {
			e.mapping = f->mapping;
			finish_read(row, &e, f->pos + (ret > 0 ? ret : 0), ret);
			return;
		}
	}
}

/* Through the cache, though the file was opened to go past it. Stands apart: 6.1 has no stack to spare below a read. */
static __noinline void count_fell_back(struct file *file, s64 bytes)
{
	struct account a;

	if (!account_open(&a))
		return;
	if (with_files && a.row)
		file_count(file_seen(a.row, number_of(a.row, file->f_mapping), 0), FC_DIRECT_FELL_BACK, bytes);
	COUNT(&a, C_DIRECT_FELL_BACK, bytes);
}

static __always_inline void fell_back(struct file *file, s64 bytes)
{
	if (file->f_flags & O_DIRECT && bytes > 0)
		count_fell_back(file, bytes);
}

static __always_inline void exit_kiocb(struct kiocb *iocb, s64 ret, u64 already, enum ledger_mode mode)
{
	/* The function returns what was delivered before it was called, too. */
	if (ret > 0)
		ret -= already;
	fell_back(iocb->ki_filp, ret);
	exit_read(iocb->ki_filp, iocb, iocb, iocb->ki_pos, ret, mode);
}

/*
 * The same for what nearly all reads are: of one call, with nothing to add, by a thread that has its row. Few values
 * outlive a call here, since each that does is saved at entry and return, and what is rare is asked in one. False:
 * nothing was counted. `detail`: latency or files may be requested.
 */
static __always_inline bool exit_warm(struct row *row, struct kiocb *iocb, s64 ret, u64 already, bool detail,
				      enum ledger_mode mode)
{
	struct file *file = iocb->ki_filp;
	struct address_space *m = file->f_mapping;
	struct file_row *f = 0;
	u64 rare, raised, end, first, pages, mapping = number_of(row, m);

	rare = already | (file->f_flags & O_DIRECT);
	rare |= *(u64 *)&row->depth; /* and `waited` */
	raised = *(volatile u64 *)filter_slot(mapping);
	if (mode != BITS)
		rare |= raised;
	if (rare || ret <= 0)
		return false;
	if (detail && with_files) {
		f = file_again(row, m, mapping);
		if (!f)
			return false;
	}
	end = iocb->ki_pos;
	if (mode == BITS && unlikely(raised)) {
		if (carrying)
			return false;
		count_present_ahead(row, mapping, end, ret, f);
		return true;
	}
	first = (end - ret) >> PAGE_SHIFT;
	pages = pages_in(end) - first;
	if (detail) {
		file_covers(f, end - ret, ret);
		file_read(f, ret, pages, 0, 0);
	}
	row->v[C_READ_CALLS]++;
	row->v[C_READ_BYTES] += ret;
	row->v[C_READ_HITS] += pages;
	mark_group(row, ROW_GROUP(C_READ_HITS));
	if (detail)
		count_latency(row, false);
	touch_read(row, mapping, first, first + pages - 1, ret, 0);
	return true;
}

static __always_inline void exit_splice(struct file *in, loff_t *ppos, s64 ret, enum ledger_mode mode)
{
	loff_t end = 0;

	bpf_probe_read_kernel(&end, sizeof(end), ppos);
	exit_read(in, ppos, 0, end, ret, mode);
}

#endif
