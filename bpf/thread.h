/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What is remembered of a thread while it is in a call that adds pages. A warm read leaves nothing here. */
#ifndef CACHETOP_THREAD_H
#define CACHETOP_THREAD_H

#include "file.h"
#include "ledger.h"

#define MAX_DEPTH 4 /* overlay on loop on a file system, and one to spare; a power of two */

enum frame_kind {
	/* A read that was first heard of when it requested read-ahead: from there to the end of the request. */
	F_NAMED,
	F_READ,
	F_WRITE,
	F_FAULT,
};

/* A request in progress. */
struct frame {
	u64 mapping;
	u64 key; /* names the request from entry to exit; 0: named by its read-ahead */
	u64 pos;
	u64 first; /* pages requested, first > last: none */
	u64 last;
	u64 added; /* pages of the request that this thread added, and the range they lie in */
	u64 added_first;
	u64 added_last;
	u64 already; /* delivered before this function was called, and part of what it returns */
	u32 absent; /* tmpfs: pages of the request that were not in memory when it began */
	u32 dropped; /* prefetched pages of the request that it used and dropped itself */
	u32 kind;
};

/* The kind of a window: for a huge page (enum collapse, task.h), metadata, or ahead of all that its thread has asked for. */
#define WINDOW_COLLAPSE 0xf
#define WINDOW_METADATA 0x10 /* of a block device, or of the trees of btrfs */
#define WINDOW_AHEAD 0x100

_Static_assert(LEDGER_WORDS <= 1 << 16, "words of the ledger have numbers of 16 bits");

/* A fault that was told to try again. */
struct again {
	u64 mapping;
	u64 index;
};

/* Look-ups of blocks in a block device's mapping (meta.h), and in the trees of btrfs (btree.h). */
struct block {
	u64 mapping; /* pages added, which no look-up has found yet */
	u64 first;
	u64 last;
	u64 wanted_in; /* the block of a directory that is read ahead from, by its page */
	u64 wanted;
	u64 ahead; /* the next look-up only reads ahead */
	u64 tree; /* btrfs: where the buffer begins that is being made */
	u64 reading; /* btrfs: the buffer that somebody who waits is about to read */
};

/* Pages that a read waits for while others read them from the device (flight.h). */
struct flight {
	u64 mapping;
	u64 syscr; /* read calls of the thread so far: which call it is */
	u64 first; /* the first folio: from here to first_end */
	u64 first_end;
	u64 between; /* pages of those between the first and the last: all of them in the read */
	u64 last;
	u64 last_end;
};

struct thread {
	struct block block;
	struct again again;
	struct flight flight;
	union {
		struct {
			u64 mapped; /* pages of files, only ever up */
			u64 mapping; /* in filemap_map_pages */
			u64 mapped_before; /* the same when the thread began to map pages around a fault */
		};
		/* Of a fault that is counted later (plainfault.h). */
		struct {
			u64 fault_task; /* the thread's */
			struct file_held fault_file;
		};
	};
	u64 direct; /* of the direct request that it submits: see direct.h */
	struct file_held direct_file;
	struct frame frame[MAX_DEPTH];
};

/* The key of a frame that no hook ends (plain.h). */
#define PLAIN_KEY 1

/* `plain_framed` of a request that has a frame, and of one that delivers nothing. */
enum { PLAIN_FRAMED = 1, PLAIN_NOTHING };

/* As many as there are rows, with the same numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline struct thread *thread_of(struct row *row)
{
	u32 n = row->number;

	return bpf_map_lookup_elem(&threads, &n);
}

/* Whether what the thread adds from this page on is of its window. */
static __always_inline bool in_window(struct window *w, u64 mapping, u64 first)
{
	return w->mapping == mapping && first >= w->first && first <= w->last;
}

/* Remembers pages as prefetched: whoever adds them mostly goes on in the word that it has set bits in last. */
static __always_inline void ledger_set_next(struct window *w, u64 mapping, u64 first, u64 last,
					    enum ledger_mode mode)
{
	u32 number;

	if (mode == BITS && w && likely(set_in_word(w->word, mapping, first, last)))
		return;
	number = ledger_set(mapping, first, last, mode);
	if (mode == BITS && w)
		w->word = number;
}

static __always_inline struct frame *frame_at(struct thread *t, u32 depth)
{
	asm volatile("" : "+r"(depth)); /* keeps the mask, which bounds the index for the verifier */
	return &t->frame[depth & (MAX_DEPTH - 1)];
}

/* A request without a hook at its end (plain.h) goes on in another row; one that has ended is counted in the old one. */
static __always_inline void go_on_plain(struct row *row, struct row *old)
{
	row->plain_bytes = 0;
	row->plain_framed = 0;
	if (!old || !old->plain_bytes)
		return;
	if (plain_has_ended(old)) {
		settle_plain(old, false);
		return;
	}
	row->plain_pos = old->plain_pos;
	row->plain_mapping = old->plain_mapping;
	row->plain_iter = old->plain_iter;
	row->plain_chars = old->plain_chars;
	row->plain_calls = old->plain_calls;
	row->plain_framed = old->plain_framed;
	row->plain_writes = old->plain_writes;
	row->plain_task = old->plain_task;
	row->plain_file = old->plain_file;
	row->plain_file_made = old->plain_file_made;
	row->plain_ahead = old->plain_ahead;
	row->plain_mark += 2; /* nobody has looked at it in this row */
	row->plain_bytes = old->plain_bytes;
	old->plain_bytes = 0;
	old->plain_framed = 0;
}

static __always_inline void go_on(struct row *row, struct row *old)
{
	struct thread *t = thread_of(row), *before = old ? thread_of(old) : 0;
	u64 fault = 0;
	bool tried = false;

	if (with_plain)
		go_on_plain(row, old); /* first: what has ended takes its frame with it */
	if (with_plain_faults) {
		fault = old ? old->plain_fault : 0;
		/* One that goes on is the new row's. */
		if (fault && fault >> PLAIN_FAULT_SHIFT == served_to(bpf_get_current_task_btf())) {
			old->plain_fault = 0;
		} else {
			tried = fault & PLAIN_FAULT_AGAIN;
			fault = 0;
		}
		if (old)
			leave_plain_fault(old, true);
	}
	row->depth = old ? old->depth : 0;
	row->waited = old ? old->waited : 0;
	row->entered = old ? old->entered : 0;
	row->call = old ? old->call : 0;
	if (with_follow) {
		row->off_at = old ? old->off_at : 0;
		row->off_why = old ? old->off_why : 0;
		row->queued = old ? old->queued : 0;
		row->off_sum = old ? old->off_sum : 0;
		row->lookup_at = old ? old->lookup_at : 0;
		row->lookup_in = old ? old->lookup_in : 0;
	}
	row->direct = old ? old->direct : 0;
	row->writing = old ? old->writing : 0;
	row->write_pos = old ? old->write_pos : 0;
	row->write_count = old ? old->write_count : 0;
	if (old)
		row->window = old->window;
	else
		__builtin_memset(&row->window, 0, sizeof(row->window));
	if (!t)
		return;
	if (before)
		bpf_probe_read_kernel(t, sizeof(*t), before);
	else
		__builtin_memset(t, 0, __builtin_offsetof(struct thread, frame));
	row->plain_fault = fault;
	if (tried)
		t->again.mapping = 0;
}

static __always_inline struct frame *push(struct row *row, struct thread *t, enum frame_kind kind, u64 mapping,
					  u64 key)
{
	u32 depth = row->depth;
	struct frame *f;

	if (depth >= MAX_DEPTH) {
		/* A stack this deep is left over from exits that never came. Start again, and say so. */
		count_one(C_LOST_DEPTH);
		depth = 0;
	}
	row->depth = depth + 1;
	/* Else pages of this request would be of a window whose end was missed. */
	row->window.kind &= ~WINDOW_AHEAD;
	if (row->window.mapping == mapping)
		row->window.mapping = 0;
	f = frame_at(t, depth);
	f->kind = kind;
	f->mapping = mapping;
	f->key = key;
	f->first = 1;
	f->last = 0;
	f->added = 0;
	f->already = 0;
	f->absent = 0;
	f->dropped = 0;
	return f;
}

/*
 * A write is a few words in the row at first, which is all that one of pages that are there needs. Whoever looks at
 * frames, or puts one on top, makes it a frame.
 */
static __noinline void frame_of_write(struct row *row, struct thread *t)
{
	struct kiocb *iocb = (void *)row->writing;
	u64 pos = row->write_pos, count = row->write_count;
	struct frame *f = push(row, t, F_WRITE, (u64)BPF_CORE_READ(iocb, ki_filp, f_mapping), row->writing);

	row->writing = 0;
	f->pos = pos;
	if (count) {
		f->first = pos >> PAGE_SHIFT;
		f->last = (pos + count - 1) >> PAGE_SHIFT;
	}
	RETURN_NOTHING();
}

/*
 * A request that is counted without a hook at its end (plain.h). While it goes on, it becomes a frame for whoever looks;
 * once it has ended, it is counted.
 */
static __noinline void frame_of_plain(struct row *row, struct thread *t)
{
	struct frame *f;
	u64 pos = row->plain_pos;

	if (plain_has_ended(row)) {
		settle_plain(row, false);
	} else if (!row->plain_framed) {
		f = push(row, t, row->plain_writes ? F_WRITE : F_READ, row->plain_mapping, PLAIN_KEY);
		f->pos = pos;
		f->first = pos >> PAGE_SHIFT;
		f->last = (pos + row->plain_bytes - 1) >> PAGE_SHIFT;
		row->plain_framed = PLAIN_FRAMED;
	}
	RETURN_NOTHING();
}

static __always_inline void need_frames(struct row *row, struct thread *t)
{
	if (with_plain && unlikely(row->plain_bytes))
		frame_of_plain(row, t);
	if (row->writing)
		frame_of_write(row, t);
}

static __always_inline struct frame *push_frame(struct row *row, struct thread *t, enum frame_kind kind,
						u64 mapping, u64 key)
{
	need_frames(row, t);
	return push(row, t, kind, mapping, key);
}

/* Pages were added for the request of a frame: one run but for rare cases. */
static __always_inline void note_added(struct frame *f, u64 first, u64 last, u64 n)
{
	if (!f->added || first < f->added_first)
		f->added_first = first;
	if (!f->added || last > f->added_last)
		f->added_last = last;
	f->added += n;
}

/* The newest frame on this mapping. */
static __always_inline struct frame *frame_on(struct row *row, struct thread *t, u64 mapping)
{
	u32 i;

	need_frames(row, t);
	for (i = 0; i < MAX_DEPTH; i++) {
		struct frame *f;

		if (i >= row->depth)
			break;
		f = frame_at(t, row->depth - 1 - i);
		if (f->mapping == mapping)
			return f;
	}
	return 0;
}

#endif
