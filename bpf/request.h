/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests as functions bracket them: entry pushes a frame on the thread's stack of frames, the pages that the
 * thread adds meanwhile are told apart by it (inside the range: missed; outside: read ahead), exit counts.
 */
#ifndef CACHETOP_REQUEST_H
#define CACHETOP_REQUEST_H

#include "pages.h"
#include "shmem.h"

static __always_inline struct frame *push_frame(struct thread *t)
{
	u32 depth = t->depth;

	if (depth >= MAX_DEPTH) {
		/* A stack this deep is left over from exits that never came. Start again, and say so. */
		count_one(C_LOST_DEPTH);
		depth = 0;
	}
	t->depth = depth + 1;
	return &t->frame[depth & (MAX_DEPTH - 1)];
}

/*
 * `key` names the request from entry to exit. An asynchronous request that is tried again (io_uring) finds the
 * pages that its earlier tries added: they are its misses.
 */
static __always_inline void enter_read(void *key, struct address_space *mapping, u64 pos, u64 count, u64 already,
				       bool async, bool holes)
{
	struct thread *t;
	struct frame *f;
	struct inode *inode;
	u64 size;

	if (!ready)
		return;
	t = thread_of(true);
	if (!t)
		return;
	inode = BPF_CORE_READ(mapping, host);
	size = BPF_CORE_READ(inode, i_size);
	f = push_frame(t);
	f->mapping = (u64)mapping;
	f->key = (u64)key;
	f->pos = pos;
	f->async = async;
	f->already = already;
	f->first = pos >> PAGE_SHIFT;
	f->added = 0;
	f->absent = 0;
	f->dropped = 0;
	/* Every entry pushes, since every exit pops. */
	if (!count || pos >= size) {
		/* Past the end nothing is delivered, and whatever is added is not for this request. */
		f->first = 1;
		f->last = 0;
		return;
	}
	if (count > size - pos)
		count = size - pos;
	f->last = (pos + count - 1) >> PAGE_SHIFT;
	if (holes && BPF_CORE_READ(mapping, nrpages) < pages_in(size))
		f->absent = absent_pages(f->mapping, f->first, f->last);
	if (async) {
		struct carry_key k = {.key = (u64)key, .pos = pos};
		struct carry *c = bpf_map_lookup_elem(&carried, &k);

		if (c && c->mapping == f->mapping) {
			f->added = c->added;
			f->added_first = c->first;
			f->added_last = c->last;
			bpf_map_delete_elem(&carried, &k);
		}
	}
}

/* What the request added but was not delivered: a later try of the same request may deliver it. */
static __always_inline void surplus(struct account *a, struct frame *f, u64 pos, u64 first, u64 last, u64 n,
				    enum ledger_mode mode)
{
	if (f->async) {
		struct carry_key k = {.key = f->key, .pos = pos};
		struct carry c = {.mapping = f->mapping, .first = first, .last = last, .added = n};

		if (!bpf_map_update_elem(&carried, &k, &c, BPF_ANY))
			return;
	}
	COUNT(a, C_PREFETCHED, n);
	ledger_set(f->mapping, first, last, mode);
}

static __always_inline void finish_read(struct frame *f, s64 delivered, enum ledger_mode mode)
{
	u64 first, last, touched, missed, filled, ahead;
	struct account a;

	/* The function returns what was delivered before it was called, too. */
	if (delivered > 0)
		delivered -= f->already;
	if (delivered <= 0 && !f->added)
		return;
	if (!account_open(&a, bpf_get_current_pid_tgid() >> 32))
		return;
	if (delivered <= 0) {
		surplus(&a, f, f->pos, f->added_first, f->added_last, f->added, mode);
		return;
	}
	first = f->pos >> PAGE_SHIFT;
	last = (f->pos + delivered - 1) >> PAGE_SHIFT;
	touched = last - first + 1;
	missed = f->added;
	if (missed && f->added_last > last) {
		/* Added for this request but not delivered by it. The pages added are one run but for rare cases. */
		u64 rest = f->added_last - (f->added_first > last ? f->added_first - 1 : last);

		if (rest > missed)
			rest = missed;
		missed -= rest;
		surplus(&a, f, f->pos + delivered, f->added_last - rest + 1, f->added_last, rest, mode);
	}
	if (missed > touched)
		missed = touched;
	filled = missed;
	missed += f->absent;
	if (missed > touched)
		missed = touched;
	ahead = f->dropped + ledger_take(f->mapping, first, last, mode);
	if (ahead > touched - missed)
		ahead = touched - missed;
	COUNT(&a, C_READ_CALLS, 1);
	COUNT(&a, C_READ_BYTES, delivered);
	COUNT(&a, C_READ_HITS, touched - missed - ahead);
	if (missed) {
		COUNT(&a, C_READ_MISSES, missed);
		COUNT(&a, C_MISS_FILLS, filled);
	}
	if (ahead)
		COUNT(&a, C_READ_AHEAD_HITS, ahead);
}

/* `key` is null where the return probe cannot see the arguments: then the newest frame is meant. */
static __always_inline void exit_read(void *key, s64 delivered, enum ledger_mode mode)
{
	struct thread *t = thread_of(false);
	struct frame *f;
	u32 depth;

	if (!t)
		return;
	depth = t->depth;
	if (!depth || depth > MAX_DEPTH)
		return;
	f = &t->frame[(depth - 1) & (MAX_DEPTH - 1)];
	if (key && f->key != (u64)key) {
		/* The exit of the newer frame never came (lossy hook): look one deeper, else this one began before us. */
		if (depth < 2)
			return;
		depth--;
		f = &t->frame[(depth - 1) & (MAX_DEPTH - 1)];
		if (f->key != (u64)key)
			return;
		count_one(C_LOST_DEPTH);
	}
	t->depth = depth - 1;
	finish_read(f, delivered, mode);
}

/* filemap_read(iocb, iter, already) and its older name generic_file_buffered_read. */
static __always_inline void enter_kiocb(struct kiocb *iocb, struct iov_iter *iter, u64 already, bool holes)
{
	struct file *file = BPF_CORE_READ(iocb, ki_filp);

	enter_read(iocb, BPF_CORE_READ(file, f_mapping), BPF_CORE_READ(iocb, ki_pos), BPF_CORE_READ(iter, count),
		   already, BPF_CORE_READ(iocb, ki_complete) != 0, holes);
}

/* filemap_splice_read(in, ppos, pipe, len, flags): no more than the pipe has room for. */
static __always_inline void enter_splice(struct file *in, loff_t *ppos, struct pipe_inode_info *pipe, u64 len,
					 bool holes)
{
	u32 used = BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail);
	u32 max = BPF_CORE_READ(pipe, max_usage);
	u64 room = max > used ? max - used : 1;
	loff_t pos = 0;

	bpf_probe_read_kernel(&pos, sizeof(pos), ppos);
	if (len > room << PAGE_SHIFT)
		len = room << PAGE_SHIFT;
	enter_read(ppos, BPF_CORE_READ(in, f_mapping), pos, len, 0, false, holes);
}

/* mm_filemap_add_to_page_cache: told apart by the request that the thread is in. */
static __always_inline void on_add(void *folio, u32 order, enum ledger_mode mode)
{
	u64 mapping = (u64)folio_mapping_of(folio);
	struct thread *t = thread_of(false);
	struct frame *f = 0;
	struct account a;
	struct added p;
	u64 first, last, n;

	if (t && t->depth) {
		f = &t->frame[(t->depth - 1) & (MAX_DEPTH - 1)];
		if (f->mapping != mapping)
			f = 0;
	}
	if (!look_at_added(&p, &a, folio, order, f != 0))
		return;
	if (f) {
		n = split_added(&a, &p, f->first, f->last, &first, &last, mode);
		if (!n)
			return;
		if (!f->added || first < f->added_first)
			f->added_first = first;
		if (!f->added || last > f->added_last)
			f->added_last = last;
		f->added += n;
		return;
	}
	if (t && added_by_fault(&a, &p, &t->fault, mode))
		return;
	if (t && t->readahead)
		count_prefetch(&a, mapping, p.first, p.last, mode);
	else
		COUNT(&a, C_OTHER_FILLS, p.last - p.first + 1);
}

static __always_inline void enter_fault(struct vm_fault *vmf, enum ledger_mode mode)
{
	struct address_space *mapping = BPF_CORE_READ(vmf, vma, vm_file, f_mapping);
	u64 index = BPF_CORE_READ(vmf, pgoff);
	struct thread *t;

	if (!ready)
		return;
	t = thread_of(true);
	if (!t)
		return;
	t->fault.mapping = (u64)mapping;
	t->fault.index = index;
	/* A fault uses the page, though it is no read. */
	ledger_take((u64)mapping, index, index, mode);
}

/* Pages mapped around a fault may be used unseen from now on: they are not called wasted later. */
static __always_inline void enter_map_pages(struct vm_fault *vmf, u64 first, u64 last, enum ledger_mode mode)
{
	struct address_space *mapping = BPF_CORE_READ(vmf, vma, vm_file, f_mapping);

	if (ready)
		ledger_take((u64)mapping, first, last, mode);
}

#endif
