/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * I/O past the cache, counted when it completes: only then is it known how much was moved. Requests that somebody
 * waits for complete in the thread that made them. Others (libaio, io_uring) complete anywhere, so that their
 * submission leaves whose they are.
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
	s64 pos; /* where it began */
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

static __always_inline void remember_direct(u64 iocb, u64 before, bool write)
{
	struct row *row = own_row(true);
	struct submitted s = {.before = before, .write = write}, *old;
	bool async = BPF_CORE_READ((struct kiocb *)iocb, ki_complete);

	/*
	 * Not every end is seen: on 6.18, beside other work, whole batches that end in a softirq pass by all programs at the
	 * tracepoint, and no count of misses rises. The request before in the same place is still here then.
	 * One that is tried again begins where it began. Those that somebody waits for may fail without an end.
	 */
	s.pos = BPF_CORE_READ((struct kiocb *)iocb, ki_pos);
	old = bpf_map_lookup_elem(&submissions, &iocb);
	if (ready && async && old && old->pos != s.pos)
		count_one(C_LOST_DIRECT);
	if (!row) {
		/* Nor may this one be taken for the one before. */
		if (old)
			bpf_map_delete_elem(&submissions, &iocb);
		return;
	}
	s.row = row->number;
	s.made = row->made;
	if (with_files)
		s.file = file_hold(row, mapping_of(iocb));
	/* No end without a beginning: where there is no room, its completion says so. */
	if (bpf_map_update_elem(&submissions, &iocb, &s, BPF_ANY) && old)
		bpf_map_delete_elem(&submissions, &iocb);
}

/* Any function that submits a direct request: its first argument. */
static __always_inline void begin_direct(u64 iocb)
{
	if (BPF_CORE_READ((struct kiocb *)iocb, ki_complete))
		remember_direct(iocb, 0, false);
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
		bpf_map_delete_elem(&submissions, &iocb);
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
			s.file = file_hold(a.row, number_of(a.row, iocb->ki_filp->f_mapping));
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
		t->direct_file = file_hold(row, mapping_of(iocb));
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
 * Where only tracepoints can be attached: iomap_dio_rw_begin(iocb, iter, flags, done_before) and
 * iomap_dio_complete(iocb, error, ret). What was done before is part of what is returned.
 */
static __always_inline void on_direct_begin(u64 iocb, struct iov_iter *iter, u64 before)
{
	remember_direct(iocb, before, is_write(iter));
}

static __always_inline void on_direct_complete(u64 iocb, s64 ret)
{
	struct submitted s = {.write = DIRECTION_UNKNOWN, .file = {.number = NO_FILE}};
	struct account a;

	if (!account_submitted(&a, iocb, &s) || ret <= 0)
		return;
	/* Submitted by a thread without room, or before we looked: no guess whether it was a read. */
	if (s.write == DIRECTION_UNKNOWN)
		count_one(C_LOST_BEGUN);
	else
		count_direct(&a, &s.file, ret - s.before, s.write);
}

#endif
