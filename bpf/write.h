/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Buffered writes. From entry to return a write has a frame; what the thread adds to the file's cache in between was
 * not there when it began. It is counted when it returns, by what was taken.
 */
#ifndef CACHETOP_WRITE_H
#define CACHETOP_WRITE_H

#include "request.h"

/* Set in the keys of pages that a write added in a try that did not take them. */
#define CARRIED_WRITE 1

/* A write that has returned. */
struct wrote {
	u64 key;
	u64 mapping;
	u64 end; /* position after it; 0: where the frame began, and what was taken */
	s64 taken;
	u64 async;
};

static __always_inline void begin_write(void *key, struct address_space *m, u64 pos, u64 count, bool anywhere)
{
	struct row *row = own_row(true);
	struct thread *t = row ? thread_of(row) : 0;
	struct frame *f;

	if (!t)
		return; /* why has been counted, or it is the monitor */
	f = push_frame(row, t, F_WRITE, number_of(row, m), number_of(row, key));
	f->pos = pos;
	if (!count)
		return;
	f->first = anywhere ? 0 : pos >> PAGE_SHIFT;
	f->last = anywhere ? ~0ULL : (pos + count - 1) >> PAGE_SHIFT;
}

/* Takes the write's frame off the stack, with what is left above it, into *out. */
static __always_inline bool pop_write(struct row *row, struct account *a, u64 key, struct frame *out)
{
	struct thread *t = thread_of(row);
	u32 i, depth;

	if (!t)
		return false;
	need_frames(row, t);
	depth = row->depth;
	close_window(a);
	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f;

		if (!depth || depth > MAX_DEPTH)
			return false;
		f = frame_at(t, --depth);
		if (f->kind == F_WRITE && f->key == key) {
			*out = *f;
			row->depth = depth;
			return true;
		}
		if (f->kind == F_NAMED && f->added) {
			COUNT(a, C_PREFETCHED, f->added);
			f->added = 0;
		}
	}
	return false;
}

/* What a write added but did not take: a later try of the same request may. */
static __always_inline void carry_write(struct account *a, struct wrote *w, u64 pos, u64 first, u64 last, u64 n)
{
	if (w->async) {
		struct carry_key k = {.key = w->key | CARRIED_WRITE, .pos = pos};
		struct carry c = {.mapping = w->mapping, .first = first, .last = last, .added = n};
		struct carry *old = bpf_map_lookup_elem(&carried, &k);
		int err;

		/* Of a request that was given up, at the same place in memory: nobody takes its pages any more. */
		if (old) {
			__sync_fetch_and_add(&carrying, -1);
			count_nobodys(C_OTHER_FILLS, old->added);
		}
		err = note(&carried, &k, &c);
		if (!err) {
			__sync_fetch_and_add(&carrying, 1);
			return;
		}
		if (old)
			forget(&carried, &k);
		/* The try that takes the pages finds them there. */
		count_one(err == -E2BIG ? C_LOST_FRAMES : C_LOST_BUSY);
	}
	COUNT(a, C_OTHER_FILLS, n);
}

/* One body for all kinds of write. `mode`: PAGES where folios have one page, so that what is used is known as it becomes dirty. */
static __always_inline void finish_write_body(struct row *row, struct wrote *w, enum ledger_mode mode)
{
	struct account a = {.row = row};
	u64 pos, first, last, touched, missed, rest;
	struct file_row *file;
	struct frame f = {};

	if (!pop_write(row, &a, w->key, &f))
		return; /* begun before we looked */
	pos = w->end ? w->end - w->taken : f.pos;
	if (w->async && carrying) {
		struct carry_key k = {.key = w->key | CARRIED_WRITE, .pos = pos};

		if (take_carried(&k, w->mapping, &f))
			__sync_fetch_and_add(&carrying, -1);
	}
	if (w->taken <= 0) {
		if (f.added)
			carry_write(&a, w, pos, f.added_first, f.added_last, f.added);
		return;
	}
	first = pos >> PAGE_SHIFT;
	last = (pos + w->taken - 1) >> PAGE_SHIFT;
	touched = last - first + 1;
	/* Cut short: the last additions were for what was not taken. */
	rest = beyond(&f, last);
	missed = f.added - rest;
	if (rest)
		carry_write(&a, w, pos + w->taken, f.added_last - rest + 1, f.added_last, rest);
	if (missed > touched) {
		COUNT(&a, C_LOST_ORDER, missed - touched);
		missed = touched;
	}
	if (mode == BITS)
		ledger_take(w->mapping, first, last, mode);
	file = file_before(row, w->mapping);
	file_count(file, FC_WRITE_HITS, touched - missed);
	file_count(file, FC_WRITE_MISSES, missed);
	COUNT(&a, C_WRITE_BYTES, w->taken);
	if (touched > missed)
		COUNT(&a, C_WRITE_HITS, touched - missed);
	if (missed)
		COUNT(&a, C_WRITE_MISSES, missed);
	touch_write(row, w->mapping, first, last);
}

static __noinline void finish_write(struct row *row, struct wrote *w)
{
	finish_write_body(row, w, BITS);
	RETURN_NOTHING();
}

static __noinline void finish_write_pages(struct row *row, struct wrote *w)
{
	finish_write_body(row, w, PAGES);
	RETURN_NOTHING();
}

static __always_inline void end_write(void *key, struct file *file, s64 taken, u64 end, bool async,
				      enum ledger_mode mode)
{
	struct row *row = own_row(false);
	struct wrote w = {.end = end, .taken = taken, .async = async};

	if (!row)
		return;
	w.key = number_of(row, key);
	w.mapping = number_of(row, file->f_mapping);
	/* Made here, where what it is made from is at hand; the body finds it. */
	if (taken > 0)
		file_used(row, file->f_mapping, w.mapping, file);
	if (mode == BITS)
		finish_write(row, &w);
	else
		finish_write_pages(row, &w);
	fell_back(file, taken);
}

/*
 * The same for what nearly all writes are: of pages that were there, and nothing has looked at frames meanwhile. False:
 * nothing was counted, and it is still to be ended.
 */
static __always_inline bool end_plain_write(struct kiocb *iocb, s64 taken, enum ledger_mode mode)
{
	struct row *row = own_row(false);
	struct file *file = iocb->ki_filp;
	struct address_space *m;
	struct file_row *f = 0;
	u64 rare, pages, pos;

	if (!row)
		return true; /* begun before we looked, or it is the monitor */
	rare = row->writing ^ number_of(row, iocb);
	rare |= carrying | (file->f_flags & O_DIRECT);
	if (rare || taken <= 0)
		return false;
	if (with_files) {
		m = file->f_mapping;
		f = file_again(row, m, number_of(row, m));
		if (!f)
			return false;
	}
	row->writing = 0;
	pos = row->write_pos;
	pages = pages_in(pos + taken) - (pos >> PAGE_SHIFT);
	file_count(f, FC_WRITE_HITS, pages);
	row->v[C_WRITE_BYTES] += taken;
	row->v[C_WRITE_HITS] += pages;
	mark_group(row, ROW_GROUP(C_WRITE_HITS));
	if (with_sketches)
		touch_write(row, number_of(row, file->f_mapping), pos >> PAGE_SHIFT,
			    (pos + taken - 1) >> PAGE_SHIFT);
	/* Last: nothing outlives the call. */
	if (mode == BITS && unlikely(*(volatile u64 *)filter_slot(low_half(file->f_mapping))))
		used_by_write(number_of(row, file->f_mapping), pos >> PAGE_SHIFT, pages);
	return true;
}

/* generic_perform_write and iomap_file_buffered_write: (iocb, iter, …), checked and locked. */
static __always_inline void enter_write(struct kiocb *iocb, struct iov_iter *iter)
{
	struct row *row = own_row(true);
	struct thread *t;

	if (!row)
		return; /* why has been counted, or it is the monitor */
	if (unlikely(row->writing)) {
		/* A write that another one makes. */
		t = thread_of(row);
		if (t)
			frame_of_write(row, t);
	}
	row->window.mapping = 0; /* none is open but one whose end was missed */
	row->write_pos = iocb->ki_pos;
	row->write_count = iter->count;
	*(const void *volatile *)&row->writing = iocb;
}

static __always_inline void exit_write(struct kiocb *iocb, s64 ret, enum ledger_mode mode)
{
	end_write(iocb, iocb->ki_filp, ret, 0, iocb->ki_complete, mode);
}

/* btrfs_buffered_write finds out itself where it writes, and moves the position. */
static __always_inline void enter_btrfs_write(struct kiocb *iocb, struct iov_iter *iter)
{
	begin_write(iocb, iocb->ki_filp->f_mapping, iocb->ki_pos, iter->count, true);
}

static __always_inline void exit_btrfs_write(struct kiocb *iocb, s64 ret, enum ledger_mode mode)
{
	end_write(iocb, iocb->ki_filp, ret, ret > 0 ? iocb->ki_pos : 0, iocb->ki_complete, mode);
}

/* shmem_add_to_page_cache, which fires no event. Reads look for holes themselves. */
static __always_inline void on_shmem_add(void *folio, u64 mapping, u64 index)
{
	struct account a = {.row = own_row(false)};
	struct added p = {.first = index};
	struct thread *t;
	struct frame *f;

	if (!a.row || !(a.row->depth | a.row->writing | a.row->plain_bytes))
		return;
	t = thread_of(a.row);
	if (!t)
		return;
	f = frame_on(a.row, t, mapping);
	if (!f || f->kind != F_WRITE)
		return;
	p.last = index + (1ULL << (folio_order_of(folio) & 31)) - 1;
	added_by_write(&a, f, &p);
}

#endif
