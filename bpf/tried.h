/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Read requests as they are made, in order, for the simulation of read-ahead (`cachestat --try`): a program of its own at
 * the entry of system calls, where the read-ahead state of the open file is still what the request will find. Where nobody
 * asks it is not loaded, and nothing else is other than it was. Through the same ring come reads that wait for pages on their
 * way: the simulation knows which window brought them in.
 */
#ifndef CACHETOP_TRIED_H
#define CACHETOP_TRIED_H

#include "follow.h"

#define BPF_RB_NO_WAKEUP 1
#define TRIED_MAX_COUNT 0x7ffff000ULL
#define TRIED_IOV 8
#define TRIED_FMODE_RANDOM 0x1000 /* include/linux/fs.h; POSIX_FADV_RANDOM sets it */

/* Where large folios are a range of orders, since 6.12 (84429b675bcf); before, one bit, and any order (5.18). */
enum mapping_flags___orders {
	AS_FOLIO_ORDER_MAX___orders = 21,
};
enum mapping_flags___large {
	AS_LARGE_FOLIO_SUPPORT___large = 6,
};
struct file_ra_state___tried {
	unsigned int ra_pages;
	loff_t prev_pos;
} __attribute__((preserve_access_index));
/* Since 6.16 the order of folios is part of the state, and windows end where large folios do. */
struct file_ra_state___order {
	unsigned short order;
} __attribute__((preserve_access_index));
struct file___tried {
	unsigned int f_mode;
	struct file_ra_state___tried f_ra;
} __attribute__((preserve_access_index));
struct backing_dev_info___tried {
	unsigned long ra_pages;
	unsigned long io_pages;
} __attribute__((preserve_access_index));
struct super_block___tried {
	struct backing_dev_info___tried *s_bdi;
} __attribute__((preserve_access_index));

/* The same numbers in src/kernel/tried.rs. */
enum tried_how {
	TRIED_RANDOM = 0x1, /* POSIX_FADV_RANDOM */
	TRIED_SPLICE = 0x2, /* sendfile: requests of what a pipe holds */
	TRIED_ORDERS = 0x4, /* windows end where large folios do */
	TRIED_LARGE = 0x8, /* of any order */
	TRIED_LATE = 0x10, /* no request: these pages are waited for */
	TRIED_ORDER_SHIFT = 8, /* of the largest folio */
};

struct tried_read {
	u64 file; /* address of the open file */
	u64 inode;
	u64 pos;
	u64 count;
	u64 size;
	s64 prev_pos; /* -1: nothing has been read through it */
	u32 dev;
	u32 run;
	u32 ra_pages; /* of the open file, and of its device */
	u32 bdi_pages;
	u32 io_pages;
	u32 how;
};

/* Set before load. */
const volatile bool with_tried = false;

/* Sized before load where it is needed. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} tried SEC(".maps");

volatile u64 tried_dropped = 0; /* there was no room in the ring, or the range of a request is not known */

/* A read of the running thread waits for these pages, which somebody has asked the device for. */
static __noinline void send_late(u64 mapping, u64 first, u64 last)
{
	struct address_space *m = (void *)mapping;
	struct tried_read r = {};
	struct inode *inode;

	r.run = run_of(bpf_get_current_pid_tgid() >> 32);
	inode = r.run ? BPF_CORE_READ(m, host) : 0;
	if (!inode)
		return;
	r.inode = BPF_CORE_READ(inode, i_ino);
	r.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r.pos = first << PAGE_SHIFT;
	r.count = (last - first + 1) << PAGE_SHIFT;
	r.how = TRIED_LATE;
	if (bpf_ringbuf_output(&tried, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&tried_dropped, 1);
}

/* What vectors ask for together; false where there are too many of them. */
static __always_inline bool tried_vectors(u64 at, u64 n, u64 *count)
{
	struct {
		u64 base;
		u64 len;
	} v;
	u32 i;

	if (n > TRIED_IOV)
		return false;
	*count = 0;
	for (i = 0; i < TRIED_IOV && i < n; i++) {
		if (bpf_probe_read_user(&v, sizeof(v), (void *)(at + i * sizeof(v))))
			return false;
		*count += v.len;
	}
	return true;
}

static __always_inline u32 tried_orders(struct address_space *m)
{
	u64 flags = BPF_CORE_READ(m, flags);
	u32 how = 0;

	if (bpf_core_field_exists(struct file_ra_state___order, order))
		how |= TRIED_ORDERS;
	if (bpf_core_enum_value_exists(enum mapping_flags___orders, AS_FOLIO_ORDER_MAX___orders))
		how |= (flags >> bpf_core_enum_value(enum mapping_flags___orders, AS_FOLIO_ORDER_MAX___orders) &
			31)
		       << TRIED_ORDER_SHIFT;
	else if (bpf_core_enum_value_exists(enum mapping_flags___large, AS_LARGE_FOLIO_SUPPORT___large) &&
		 flags >> bpf_core_enum_value(enum mapping_flags___large, AS_LARGE_FOLIO_SUPPORT___large) & 1)
		how |= TRIED_LARGE;
	return how;
}

/* Any system call is entered. */
static __always_inline void on_tried(s64 nr, u64 fd, u64 a1, u64 a2, u64 a3)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct backing_dev_info___tried *bdi;
	struct super_block___tried *super;
	struct tried_read r = {};
	struct address_space *m;
	struct file___tried *t;
	struct inode *inode;
	struct file *file;
	bool at = false, known = true;

	switch (nr) {
	case NR_read:
	case NR_pread64:
		r.count = a2;
		at = nr == NR_pread64;
		break;
	case NR_readv:
	case NR_preadv:
	case NR_preadv2:
	case NR_sendfile:
		break;
	default:
		return;
	}
	r.run = run_of(bpf_get_current_pid_tgid() >> 32);
	if (!r.run || BPF_CORE_READ(task, thread_info.status) & TS_COMPAT)
		return;
	if (nr == NR_sendfile)
		fd = a1;
	file = file_at_descriptor(fd);
	m = file ? BPF_CORE_READ(file, f_mapping) : 0;
	inode = m ? BPF_CORE_READ(m, host) : 0;
	if (!inode)
		return;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG || BPF_CORE_READ(file, f_flags) & O_DIRECT)
		return;
	if (nr == NR_readv || nr == NR_preadv || nr == NR_preadv2) {
		known = tried_vectors(a1, a2, &r.count);
		at = nr == NR_preadv || (nr == NR_preadv2 && a3 != ~0ULL);
	}
	r.pos = at ? a3 : BPF_CORE_READ(file, f_pos);
	if (nr == NR_sendfile) {
		r.count = a3;
		r.how |= TRIED_SPLICE;
		if (a2)
			known = !bpf_probe_read_user(&r.pos, sizeof(r.pos), (void *)a2);
	}
	if (!known) {
		__sync_fetch_and_add(&tried_dropped, 1);
		return;
	}
	if (r.count > TRIED_MAX_COUNT)
		r.count = TRIED_MAX_COUNT;
	t = (void *)file;
	if (BPF_CORE_READ(t, f_mode) & TRIED_FMODE_RANDOM)
		r.how |= TRIED_RANDOM;
	r.how |= tried_orders(m);
	r.file = (u64)file;
	r.inode = BPF_CORE_READ(inode, i_ino);
	r.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r.size = BPF_CORE_READ(inode, i_size);
	r.prev_pos = BPF_CORE_READ(t, f_ra.prev_pos);
	r.ra_pages = BPF_CORE_READ(t, f_ra.ra_pages);
	super = (void *)BPF_CORE_READ(inode, i_sb);
	bdi = BPF_CORE_READ(super, s_bdi);
	r.bdi_pages = BPF_CORE_READ(bdi, ra_pages);
	r.io_pages = BPF_CORE_READ(bdi, io_pages);
	if (bpf_ringbuf_output(&tried, &r, sizeof(r), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&tried_dropped, 1);
}

#endif
