/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests where functions cannot be bracketed, from 6.12 on: mm_filemap_get_pages says, at the end of each
 * successful look-up inside a read, which pages the read still wants. What belongs to one call is known by the
 * thread's count of read calls (task->ioac.syscr, raised as each ends); where a call began is in the registers
 * that it entered the kernel with, since a batch that ends in a page under I/O fires no event.
 *
 * A request that may still add pages is kept pending and counted when it has ended: at the thread's next event,
 * at its exit, or at the monitor's tick (settle_pending). Pages are added before the event of the look-up that
 * needed them: what was added since the last event belongs to the request that the next one names.
 */
#ifndef CACHETOP_CALLS_H
#define CACHETOP_CALLS_H

#include "call.h"
#include "entry.h"
#include "task.h"

enum { IORING_OP_READ_FIXED = 4, IORING_OP_READ = 22 };

/* The last page of so many bytes. */
static __always_inline u64 last_page(u64 pos, u64 bytes)
{
	return (pos + bytes - 1) >> PAGE_SHIFT;
}

/* Pages that a thread added in a system call, while it served no fault: by which request. */
static __always_inline void added_by_call(struct account *a, struct call *c, struct entry *e, struct added *p,
					  u64 syscr)
{
	u64 pos, count, f, l;
	bool ahead = true;

	if (e->kernel && collapses_for_others(bpf_get_current_task_btf()->flags)) {
		count_collapsed(a, p);
		return;
	}
	if (e->kernel)
		goto later;
	switch (e->nr) {
	case NR_madvise:
	case NR_process_madvise:
		if ((u32)(e->nr == NR_madvise ? e->a2 : e->a3) == MADV_COLLAPSE)
			goto nobodys;
		/* fallthrough */
	case -1:
	case NR_readahead:
	case NR_fadvise64:
		count_prefetch(a, 0, (u64)p->mapping, p->first, p->last, BITS, TOUCH_AHEAD);
		return;
	case NR_read:
	case NR_pread64:
	case NR_readv:
	case NR_preadv:
	case NR_preadv2:
		if (!asked(e, &pos, &count))
			goto remember;
		/* What lies beyond the request is read ahead at once, so that another reader's use of it is seen. */
		if (!split_added(a, 0, p, pos >> PAGE_SHIFT, last_page(pos, count), &f, &l, BITS))
			return;
		p->first = f;
		p->last = l;
		goto remember;
	case NR_sendfile:
	case NR_splice:
	case NR_copy_file_range:
		switch (sent_from(e, p->mapping)) {
		case SOURCE:
			goto remember;
		case TARGET:
			goto nobodys;
		case EITHER:
			goto later;
		}
		goto nobodys;
	case NR_execve:
	case NR_execveat:
		goto remember;
	case NR_io_uring_enter:
		if (!c->uring_bytes)
			goto later;
		/* The request may be tried again later, here or by a worker: its pages are marked as requested. */
		if (split_added(a, 0, p, c->uring_pos >> PAGE_SHIFT, last_page(c->uring_pos, c->uring_bytes), &f,
				&l, BITS))
			ledger_set((u64)p->mapping | DEMANDED, f, l, BITS);
		return;
	case NR_io_submit:
	case NR_compat:
	/* overlayfs copies a file that is opened to be written. What it adds to the copy gets dirty (written_in_call). */
	case NR_open:
	case NR_creat:
	case NR_openat:
	case NR_openat2:
	case NR_finit_module:
		goto later;
	default:
		goto nobodys;
	}
nobodys:
	COUNT(a, C_OTHER_FILLS, p->last - p->first + 1);
	return;
later:
	ahead = false;
remember:
	remember_extent(c, (u64)p->mapping, syscr, p->first, p->last, ahead);
}

static __always_inline void on_add_in_call(void *folio, u32 order)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct added p;
	struct account a;
	struct entry e;
	struct call *c;
	u64 syscr = task->ioac.syscr;

	if (!ready || !account_open(&a) || !look_at_added(&p, &a, folio, order, ARGUMENT_OF_BTF))
		return;
	entry_of(&e);
	/* A block device that is itself being read is no metadata. */
	if (is_metadata(p.mapping) && !reads_device(&e, folio)) {
		COUNT(&a, C_META_FILLS, p.last - p.first + 1);
		return;
	}
	c = call_of(a.row);
	if (!c)
		return;
	/* While a fault is being served, all that its thread adds to the file is for it, or ahead of it. */
	if (c->faults.nr == e.nr && faults_now(&c->faults, (u64)p.mapping, served_to(task))) {
		added_by_fault(&a, 0, &p, c->faults.index, BITS);
		if (c->faults.index >= p.first && c->faults.index <= p.last)
			missed_by_fault(&a, &c->faults);
		return;
	}
	added_by_call(&a, c, &e, &p, syscr);
}

/*
 * A folio that the thread makes dirty. What it has just added there was for a write, where nothing else has told that from a read: later reads of
 * the thread would take it for theirs.
 */
static __always_inline void written_in_call(void *folio)
{
	struct account a;
	struct call *c;
	u64 index;
	u32 n;

	if (!ready || !account_open(&a) || !a.row || !a.row->call)
		return;
	c = call_at(a.row->call - 1);
	if (!c || c->extents <= c->owned || c->leftover_is_readahead)
		return;
	if (c->extent_mapping != (u64)mapping_from(a.row, folio, ARGUMENT_OF_BTF))
		return;
	index = index_from(folio, ARGUMENT_OF_BTF);
	n = (c->extents - 1) & (MAX_EXTENTS - 1);
	if (index >= c->extent[n].first && index <= c->extent[n].last)
		flush_extents(c);
}

static __always_inline void note_file(struct call *c, struct file_row *f, struct row *row)
{
	c->file = f && row ? row->file : NO_FILE;
	c->file_made = f ? f->made : 0;
}

/* What an event says of a request, and what the request is then found to be. */
struct looked_up {
	u64 mapping;
	u64 syscr;
	u64 index;
	u64 last;
	u64 size; /* bytes of the file */
	u64 in_smallest; /* see smallest_of */
	u64 first; /* at or before `index` */
	u64 end; /* at or before `last` */
	u64 bytes;
	u64 pos;
};

/*
 * Whether so many bytes may be the request that the event is of: they end where it does, or in the folio that it ends with: later than 6.12 it
 * names the last page of that.
 */
static __always_inline bool ends_there(struct looked_up *l, u64 pos, u64 count)
{
	u64 last = last_page(pos, count);

	return pos >> PAGE_SHIFT <= l->index && l->index <= last &&
	       (last == l->last || (last | l->in_smallest) == l->last);
}

static __always_inline void request_is(struct looked_up *l, u64 pos, u64 end)
{
	if (end > l->size)
		end = l->size;
	l->bytes = end > pos ? end - pos : 0;
	l->first = pos >> PAGE_SHIFT;
	l->pos = pos;
}

/* sendfile() and its like go through a pipe of sixteen places, each for a page or a part of one; as does who asks for a new pipe. */
#define PIPE_PLACES 16ULL

/*
 * Where a piece of a transfer begins that is not the first. Before a page that is waited for there may be some that no event told of.
 */
static __always_inline u64 piece_begins(struct looked_up *l, struct call *c, struct entry *e)
{
	/* splice() sends one piece, and is not counted as a call: this may as well be one of before. */
	bool goes_on = c->mapping == l->mapping && c->syscr == l->syscr && e->nr != NR_splice;

	if (goes_on && l->index > c->end && l->index - c->end <= PIPE_PLACES + 1)
		return (c->end + 1) << PAGE_SHIFT;
	/* Within the folio that the last one was counted to the end of. */
	if (goes_on && l->index <= c->end && c->end - l->index < l->in_smallest)
		return (c->end + 1) << PAGE_SHIFT;
	return l->index << PAGE_SHIFT;
}

/* Whether a piece of the transfer, which begins with this page, has been counted. */
static __always_inline bool has_begun(struct looked_up *l, struct call *c, struct entry *e, u64 first)
{
	return c->mapping == l->mapping && c->syscr == l->syscr && e->nr != NR_splice && c->end >= first &&
	       l->index > c->end;
}

/*
 * A transfer is served in pieces, each of which is a request, for as many bytes as whole pages would have room in the pipe. The first one may
 * begin within a page: then its last page has no place, and comes with the next.
 */
static __always_inline void find_piece(struct looked_up *l, struct call *c, struct entry *e)
{
	u64 pos, count, begin, first, room = PIPE_PLACES << PAGE_SHIFT;
	u64 most = e->nr == NR_splice ? MAX_RW_COUNT : room;
	u64 end = (l->last + 1) << PAGE_SHIFT;

	if (!asked_to_send(e, &begin, &count)) {
		request_is(l, piece_begins(l, c, e), end);
		return;
	}
	if (e->nr == NR_copy_file_range && l->size > begin && count > l->size - begin)
		count = l->size - begin; /* which the kernel does, too */
	first = begin >> PAGE_SHIFT;
	if (l->index >= first && l->index - first < PIPE_PLACES && !has_begun(l, c, e, first) &&
	    (e->nr == NR_splice || ends_there(l, begin, count < most ? count : most)))
		pos = begin;
	else
		pos = piece_begins(l, c, e);
	first = pos >> PAGE_SHIFT;
	count = begin + count > pos ? begin + count - pos : 0;
	if (count > most)
		count = most;
	if (count && ends_there(l, pos, count)) {
		end = pos + count;
		if (count <= room && end > (first + PIPE_PLACES) << PAGE_SHIFT)
			end = (first + PIPE_PLACES) << PAGE_SHIFT;
	} else if (pos & ((1 << PAGE_SHIFT) - 1) && first < l->last && !l->in_smallest) {
		end = l->last << PAGE_SHIFT; /* a pipe with less room, or more */
	}
	l->end = (end - 1) >> PAGE_SHIFT;
	request_is(l, pos, end);
}

/* The request that an event is of, the last page not clipped to the file. */
static __always_inline void find_request(struct looked_up *l, struct call *c, struct entry *e)
{
	u64 pos = 0, count = ~0ULL, end;

	l->end = l->last;
	if (sends(e)) {
		find_piece(l, c, e);
		return;
	}
	if (asked(e, &pos, &count) && ends_there(l, pos, count)) {
		l->end = last_page(pos, count);
		request_is(l, pos, pos + count);
		return;
	}
	end = (l->last + 1) << PAGE_SHIFT;
	if (!count && pos >> PAGE_SHIFT <= l->index && (u64)file_mapping_of(file_of(e->a0)) == l->mapping) {
		/* How long its many buffers are is not known; where it begins is, also if the first pages are waited for. */
		request_is(l, pos, end);
		return;
	}
	pos = l->index << PAGE_SHIFT;
	if (e->nr == NR_io_uring_enter && c->uring_bytes && ends_there(l, c->uring_pos, c->uring_bytes)) {
		/* Tried again, it goes on where it stopped: what comes before was counted. */
		if (c->uring_pos > pos)
			pos = c->uring_pos;
		end = c->uring_pos + c->uring_bytes;
		l->end = (end - 1) >> PAGE_SHIFT;
	}
	request_is(l, pos, end);
}

/* The address of the mapping that an event names, as a number. */
static __always_inline u64 number_of_mapping(struct row *row, u64 *ctx)
{
	return row ? number_of(row, (void *)ctx[0]) : number(ctx, 0);
}

/* Nothing of the thread's call waits: see quick.h. */
static __always_inline void call_rests(struct row *row, struct call *c)
{
	if (!row || c->extents || c->marked || c->state & CALL_CHANGES)
		return;
	see_regs();
	barrier();
	row->beside.own.idle = true;
}

/*
 * Whether a look-up that ends in the same folio as the last one is of the same request: io_uring's may be the next, and so is the last page of a
 * transfer for which the piece before had no place (find_piece).
 */
static __always_inline bool goes_on(struct call *c, struct address_space *m, u64 index)
{
	return index <= c->end || (index != c->last && !smallest_of(m->flags));
}

static __always_inline void on_get_pages(u64 *ctx)
{
	struct address_space *m = (void *)ctx[0];
	struct looked_up l = {.index = ctx[1], .last = ctx[2]};
	struct task_struct *task = bpf_get_current_task_btf();
	struct account a;
	struct entry e;
	struct call *c;
	u64 end;
	bool held;

	if (!ready || !account_open(&a))
		return;
	c = call_of(a.row);
	if (!c)
		return;
	l.syscr = task->ioac.syscr;
	l.mapping = number_of_mapping(a.row, ctx);
	held = hold_call(c);
	if (c->mapping == l.mapping && c->syscr == l.syscr && c->last == l.last && l.index > c->index &&
	    goes_on(c, m, l.index)) {
		c->index = l.index;
		if (c->extent_mapping == l.mapping && c->extent_syscr == l.syscr) {
			if (held)
				c->owned = c->extents;
			else
				added_late(c);
		}
		if (held)
			await_end(c);
		else
			call_rests(a.row, c);
		return;
	}
	if (held) {
		if (c->syscr != l.syscr)
			own_rest(c);
		settle(c);
	}
	if (c->extents && (c->extent_mapping != l.mapping || c->extent_syscr != l.syscr))
		flush_extents(c);
	entry_of(&e);
	l.size = m->host->i_size;
	l.in_smallest = smallest_of(m->flags);
	find_request(&l, c, &e);
	end = l.size ? (l.size - 1) >> PAGE_SHIFT : 0;
	if (end > l.end)
		end = l.end;
	c->first = l.size ? l.first : 1;
	c->end = l.size ? end : 0;
	c->bytes = l.bytes;
	c->pos = l.pos;
	c->mapping = l.mapping;
	c->syscr = l.syscr;
	c->last = l.last;
	c->index = l.index;
	c->owned = c->extents;
	if (with_files)
		note_file(c, a.row ? file_used(a.row, m, l.mapping, 0) : 0, a.row);
	if (c->first > c->end)
		c->ahead = 0;
	else if (a.row)
		c->ahead = ledger_take_next(a.row, l.mapping, c->first, c->end, BITS);
	else
		c->ahead = ledger_take(l.mapping, c->first, c->end, BITS);
	/* Requests of io_uring go on in whatever call their thread is in by then (epoll_wait, nanosleep). */
	c->by_syscall = reads_itself(&e);
	/* One page, or a file that is cached as a whole: nothing can be added any more. */
	if (c->end != l.index && m->nrpages < pages_in(l.size)) {
		await_end(c);
		return;
	}
	if (c->owned || c->marked || !c->by_syscall)
		settle(c);
	else if (c->first <= c->end)
		count_read(&a, c, 0);
	else
		return;
	call_rests(a.row, c);
}

struct io_rw___read {
	struct kiocb kiocb;
	u32 len;
} __attribute__((preserve_access_index));

/* io_uring_submit_req: the request that the next additions of this thread are for. */
static __always_inline void on_uring_submit(struct io_kiocb *req)
{
	struct io_rw___read *rw = (void *)req;
	u8 opcode = BPF_CORE_READ(req, opcode);
	struct account a;
	struct call *c;
	u64 pos, len;

	if (!ready || !account_open(&a))
		return;
	c = call_of(a.row);
	if (!c)
		return;
	c->uring_bytes = 0;
	if (opcode != IORING_OP_READ && opcode != IORING_OP_READ_FIXED)
		return;
	pos = BPF_CORE_READ(rw, kiocb.ki_pos);
	len = BPF_CORE_READ(rw, len);
	if ((s64)pos < 0 || !len)
		return;
	c->uring_pos = pos;
	c->uring_bytes = len;
}

static __always_inline void on_fault_in_call(u64 *ctx)
{
	u64 mapping, index = ctx[1];
	struct account a;
	struct call *c;
	struct entry e;

	if (!ready || !account_open(&a))
		return;
	mapping = number_of_mapping(a.row, ctx);
	used_by_fault(mapping, index, index);
	c = call_of(a.row);
	if (!c)
		return;
	entry_of(&e);
	on_looked_up(&a, &c->faults, mapping, index, served_to(bpf_get_current_task_btf()), e.nr);
	note_unsettled(c);
}

static __always_inline void on_map_pages_in_call(u64 *ctx)
{
	u64 mapping, first = ctx[1], last = ctx[2];
	struct account a;
	struct call *c;

	if (!ready || !account_open(&a))
		return;
	mapping = number_of_mapping(a.row, ctx);
	used_by_fault(mapping, first, last);
	c = call_of(a.row);
	if (!c)
		return;
	on_mapped_around(&a, &c->faults, mapping, first, last, served_to(bpf_get_current_task_btf()));
	note_unsettled(c);
}

/* The faults of a thread that have been served by now. */
static __always_inline void settle_faults_of(struct call *c, struct task_struct *task)
{
	struct account a;

	if (account_call(&a, c))
		settle_faults(&a, &c->faults, &c->faults, served_to(task));
}

#endif
