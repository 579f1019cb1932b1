/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * I/O past the cache, counted when it completes: only then is it known how much was moved. Requests that somebody
 * waits for complete in the thread that made them. Others (libaio, io_uring) complete anywhere, so that their
 * submission leaves whose they are.
 *
 * Not every completion is seen. Most of these run in a softirq, in the name of whatever thread it came upon, and there are
 * kernels that run no program of ours in the name of certain threads, and count no miss. So what is queued is
 * counted then where a tracepoint tells of it, by the thread that queues it.
 */
#ifndef CACHETOP_DIRECT_H
#define CACHETOP_DIRECT_H

#include "request.h"

#define IOMAP_DIO_WRITE (1U << 30)
#define REQ_OP_MASK 0xff
#define REQ_OP_WRITE 1
#define DIRECTION_UNKNOWN 2
#define EFAULT 14
#define EIOCBQUEUED 529

struct submitted {
	u32 row;
	u32 made;
	struct file_held file;
	/* Told where the completion does not tell: */
	u64 before; /* bytes done already, part of what is returned */
	u64 write;
	/* With tracepoints only: */
	s64 pos; /* where it begins */
	s64 size; /* of the file, where a read ends */
	s64 queued; /* bytes counted when it was queued */
	u64 open; /* a number that no other request has; 0: it has been counted */
};

/* Requests on their way, by the address of their kiocb. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct submitted);
} submissions SEC(".maps");

/* The direction and operation of a request through buffer heads: one word from 6.0 on. */
struct dio___op {
	int op;
} __attribute__((preserve_access_index));
struct dio___opf {
	unsigned int opf;
} __attribute__((preserve_access_index));

/* The mapping of the file that a request is for, as a number. */
static __always_inline u64 mapping_of(u64 iocb)
{
	return (u64)BPF_CORE_READ((struct kiocb *)iocb, ki_filp, f_mapping);
}

static __always_inline u64 opened_by(u64 iocb)
{
	return (u64)BPF_CORE_READ((struct kiocb *)iocb, ki_filp);
}

static __always_inline void remember_direct(struct row *row, u64 iocb, struct submitted *s)
{
	s->row = row->number;
	s->made = row->made;
	if (with_files)
		s->file = file_hold(row, mapping_of(iocb), opened_by(iocb));
	/* No end without a beginning: where there is no room, its completion says so. Nor is it taken for another's. */
	if (note(&submissions, &iocb, s))
		forget(&submissions, &iocb);
}

/* Any function that submits a direct request: its first argument. */
static __always_inline void begin_direct(u64 iocb)
{
	struct submitted s = {};
	struct row *row;

	if (!BPF_CORE_READ((struct kiocb *)iocb, ki_complete))
		return;
	row = own_row(true);
	if (row)
		remember_direct(row, iocb, &s);
	else
		forget(&submissions, &iocb);
}

static __always_inline void count_direct(struct account *a, struct file_held *file, s64 bytes, bool write)
{
	if (bytes <= 0)
		return;
	file_count(file_of_held(file), write ? FC_DIRECT_WRITE_BYTES : FC_DIRECT_READ_BYTES, bytes);
	if (write)
		COUNT(a, C_DIRECT_WRITE_BYTES, bytes);
	else
		COUNT(a, C_DIRECT_READ_BYTES, bytes);
}

/* Whose request this is. *out is left as it was where nothing is remembered. */
static __always_inline bool account_submitted(struct account *a, u64 iocb, struct submitted *out)
{
	struct submitted *s = bpf_map_lookup_elem(&submissions, &iocb);
	struct row *row = 0;

	if (s) {
		*out = *s;
		row = row_at(s->row);
		if (row && (row->made != s->made || row->state == ROW_FREE))
			row = 0;
		forget(&submissions, &iocb);
	}
	/* Its thread is gone, and its row with it: the totals still have it. */
	if (!row)
		return account_nobody(a);
	a->row = row;
	a->nobody = 0;
	return true;
}

static __always_inline void complete_direct(struct kiocb *iocb, s64 bytes, bool write)
{
	struct submitted s = {.file = {.number = NO_FILE}};
	struct account a;

	if (iocb->ki_complete) {
		if (!account_submitted(&a, (u64)iocb, &s))
			return;
	} else {
		/* Somebody waits for it: the one who made it, who runs here. */
		if (!account_open(&a))
			return;
		if (with_files && bytes > 0 && a.row)
			s.file = file_hold(a.row, number_of(a.row, iocb->ki_filp->f_mapping),
					   number_of(a.row, iocb->ki_filp));
	}
	count_direct(&a, &s.file, bytes, write);
}

/* A request reads no further than the end of file. */
static __always_inline s64 up_to(s64 size, s64 pos, s64 bytes)
{
	return pos + bytes > size ? size - pos : bytes;
}

/* iomap_dio_complete(dio): what it will return, computed from what it gets. */
static __always_inline void complete_iomap(struct iomap_dio *dio)
{
	struct kiocb *iocb = dio->iocb;
	bool write = dio->flags & IOMAP_DIO_WRITE;
	s64 bytes = dio->error ? 0 : dio->size;

	if (!write)
		bytes = up_to(dio->i_size, iocb->ki_pos, bytes);
	complete_direct(iocb, bytes, write);
}

/* iomap_dio_simple_complete(sr), 7.3: a read of one extent. */
static __always_inline void complete_simple(struct iomap_dio_simple *sr)
{
	complete_direct(sr->iocb, sr->bio.bi_status ? 0 : sr->size, false);
}

/* dio_complete(dio, ret, flags): the same, through buffer heads. */
static __always_inline void complete_buffers(struct dio *dio, s64 ret)
{
	struct kiocb *iocb = dio->iocb;
	s64 bytes = dio->result;
	bool write;

	if (bpf_core_field_exists(struct dio___opf, opf))
		write = (BPF_CORE_READ((struct dio___opf *)dio, opf) & REQ_OP_MASK) == REQ_OP_WRITE;
	else
		write = BPF_CORE_READ((struct dio___op *)dio, op) == REQ_OP_WRITE;
	if (!write)
		bytes = up_to(dio->i_size, iocb->ki_pos, bytes);
	/* A bad address after some of it is no error. */
	if ((ret && ret != -EFAULT) || dio->page_errors || dio->io_error)
		bytes = 0;
	complete_direct(iocb, bytes, write);
}

/*
 * blkdev_direct_IO(iocb, iter): block devices. What is queued is queued whole, and counted then: nothing sees it
 * complete but its owner.
 */
static __always_inline void enter_device(u64 iocb, struct iov_iter *iter)
{
	struct row *row = own_row(true);
	struct thread *t = row ? thread_of(row) : 0;

	if (!t)
		return;
	t->direct = iter->count << 1 | is_write(iter);
	/* Now: what is queued may be done, and its request gone, when the function returns. */
	if (with_files)
		t->direct_file = file_hold(row, mapping_of(iocb), opened_by(iocb));
}

static __always_inline void exit_device(s64 ret)
{
	struct account a = {.row = own_row(false)};
	struct thread *t = a.row ? thread_of(a.row) : 0;

	if (!t)
		return;
	/* Begun before we looked, or its beginning was not seen: no guess what it was. */
	if (!t->direct) {
		if (ready && (ret > 0 || ret == -EIOCBQUEUED))
			count_one(C_LOST_BEGUN);
		return;
	}
	count_direct(&a, &t->direct_file, ret == -EIOCBQUEUED ? t->direct >> 1 : ret, t->direct & 1);
	t->direct = 0;
}

/*
 * Where only tracepoints can be attached: iomap_dio_rw_begin(iocb, iter, flags, done_before), in the same thread
 * iomap_dio_rw_queued(inode, pos, len) for what nobody waits for, and iomap_dio_complete(iocb, error, ret), which may come
 * before that, or not be seen. Who comes first counts.
 */
static __always_inline void on_direct_begin(u64 iocb, struct iov_iter *iter, u64 before)
{
	struct submitted s = {.before = before, .write = is_write(iter)};
	struct row *row = own_row(true);

	if (!row) {
		/* The one before in the same place of memory may still be here: this one is not it. */
		forget(&submissions, &iocb);
		return;
	}
	s.pos = BPF_CORE_READ((struct kiocb *)iocb, ki_pos);
	s.size = BPF_CORE_READ((struct kiocb *)iocb, ki_filp, f_mapping, host, i_size);
	s.open = bpf_ktime_get_ns();
	row->direct = iocb;
	remember_direct(row, iocb, &s);
}

/* True for one of those who ask. A place in the table may be another request's meanwhile, which has another number. */
static __always_inline bool claim(struct submitted *s, u64 open)
{
	return open && __sync_val_compare_and_swap(&s->open, open, 0) == open;
}

/* All of it up to `end`, but for `left` bytes, is queued. */
static __always_inline void on_direct_queued(s64 end, u64 left)
{
	struct account a = {.row = own_row(false)};
	struct submitted *s, copy;
	u64 iocb;

	if (!a.row || !a.row->direct)
		return;
	iocb = a.row->direct;
	a.row->direct = 0;
	s = bpf_map_lookup_elem(&submissions, &iocb);
	/* It has failed in part: what that comes to, its end tells. */
	if (!s || left)
		return;
	copy = *s;
	/* It has ended, and another thread's is where it was. */
	if (copy.row != a.row->number || copy.made != a.row->made)
		return;
	copy.queued = end - copy.pos;
	if (!copy.write)
		copy.queued = up_to(copy.size, copy.pos, copy.queued);
	s->queued = copy.queued;
	if (claim(s, copy.open))
		count_direct(&a, &copy.file, copy.queued, copy.write);
}

static __always_inline void on_direct_complete(u64 iocb, s64 ret)
{
	struct submitted copy = {.write = DIRECTION_UNKNOWN, .file = {.number = NO_FILE}};
	struct submitted *s = bpf_map_lookup_elem(&submissions, &iocb);
	struct account a;

	if (s && !claim(s, s->open)) {
		/* Counters only rise: one that fails after all is told under LOST. */
		if (ready && (ret < 0 || ret - (s64)s->before < s->queued))
			count_one(C_LOST_DIRECT);
		forget(&submissions, &iocb);
		return;
	}
	if (!account_submitted(&a, iocb, &copy) || ret <= 0)
		return;
	/* Submitted by a thread without room, or before we looked: no guess whether it was a read. */
	if (copy.write == DIRECTION_UNKNOWN)
		count_one(C_LOST_BEGUN);
	else
		count_direct(&a, &copy.file, ret - copy.before, copy.write);
}

#endif
