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
 * A read in which something happened (a page was added or waited for) has a frame. What that needs to be counted is more
 * than programs of older kernels can be loaded with, and these share the code that ends rows. So there it is only closed:
 * what it delivered is noted, and the thread's next read counts it, or the tick, once the row has ended.
 */
#ifndef CACHETOP_PLAIN_H
#define CACHETOP_PLAIN_H

#include "read.h"

#define IOCB_HIPRI 0x01 /* as RWF_HIPRI; part of what user space can ask for */
#define IOCB_NOWAIT 0x08 /* as RWF_NOWAIT */

/* One in which something happened that made it a frame: see frame_of_plain. */
static __noinline void finish_plain(struct row *row, u64 bytes)
{
	struct ended e = {
		.mapping = row->plain_mapping,
		.key = PLAIN_KEY,
		.end = row->plain_pos + bytes,
		.delivered = bytes,
		.later = true,
		.syscr = row->plain_syscr,
	};

	finish_read_body(row, &e, BITS);
	RETURN_NOTHING();
}

/* By the thread whose row it is, or by the tick when that is no more. */
static __noinline void settle_plain(struct row *row)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 bytes;

	if (row->plain_framed == PLAIN_CLOSED)
		bytes = row->plain_buffer;
	else
		bytes = plain_delivered(row->plain_bytes, calls_ended(task) - row->plain_syscr,
					chars_read(task) - row->plain_rchar);
	row->plain_mark++;
	barrier();
	row->plain_bytes = 0;
	if (row->plain_framed) {
		row->plain_framed = PLAIN_ALONE;
		finish_plain(row, bytes);
	} else if (bytes) {
		count_plain(row, row->plain_pos, bytes);
	}
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
	u64 rare, rchar, syscr, bytes = row->plain_bytes, next = iter->count;
	u64 buffer = word_at(&iter->ubuf) + iter->iov_offset;

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
	row->plain_mark++;
	barrier();
	if (likely(bytes)) {
		bytes = plain_delivered(bytes, syscr - row->plain_syscr, rchar - row->plain_rchar);
		if (likely(bytes))
			count_plain(row, row->plain_pos, bytes);
	}
	row->plain_bytes = next;
	row->plain_pos = pos;
	row->plain_mapping = mapping;
	row->plain_buffer = buffer;
	row->plain_rchar = rchar;
	row->plain_syscr = syscr;
	row->plain_framed = PLAIN_ALONE;
	barrier();
	row->plain_mark++;
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
	u64 delivered;

	if (!row || !row->plain_bytes || plain_has_ended(row))
		return;
	delivered = address - row->plain_buffer;
	if (delivered > row->plain_bytes)
		return;
	row->plain_mark++;
	barrier();
	row->plain_bytes = delivered;
	if (!delivered && row->plain_framed) {
		row->plain_framed = PLAIN_ALONE;
		finish_plain(row, 0);
	}
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
	u64 mark, pos, bytes, calls, chars;

	if (!row)
		return 1;
	if (row->state == ROW_ENDED) {
		if (row->plain_framed == PLAIN_CLOSED)
			settle_plain(row);
		return 0;
	}
	mark = *(volatile u64 *)&row->plain_mark;
	bytes = *(volatile u64 *)&row->plain_bytes;
	/* Of what became a frame, more is to be counted than is said here. */
	if (!bytes || row->looked_mark == mark || mark & 1 || row->plain_framed || !row->task)
		return 0;
	task = bpf_core_cast((void *)row->task, struct task_struct);
	calls = calls_ended(task) - row->plain_syscr;
	chars = chars_read(task) - row->plain_rchar;
	pos = row->plain_pos;
	bytes = plain_delivered(bytes, calls, chars);
	if (!calls || !bytes)
		return 0;
	barrier();
	if (*(volatile u64 *)&row->plain_mark != mark || row->state != ROW_LIVE)
		return 0;
	row->looked_bytes = bytes;
	row->looked_pages = pages_in(pos + bytes) - (pos >> PAGE_SHIFT);
	barrier();
	row->looked_mark = mark;
	row->touched[ROW_GROUP(C_READ_HITS)] = 1;
	return 0;
}

#endif
