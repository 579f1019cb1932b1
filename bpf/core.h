/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shapes that differ between kernels, each behind one accessor that names the change. */
#ifndef CACHETOP_CORE_H
#define CACHETOP_CORE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "arch/x86_64.h"

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6
#define BTRFS_MAGIC 0x9123683e
#define XFS_MAGIC 0x58465342
#define O_DIRECT 040000
#define PF_KTHREAD 0x00200000
#define PF_MEMALLOC 0x00000800
#define PF_IO_WORKER 0x00000010

/* Before folios (5.16), the cache was a cache of pages. */
struct page___before_folios {
	struct address_space *mapping;
	unsigned long index;
} __attribute__((preserve_access_index));

/* The order of a large folio stood in _folio_order until 6.6, then in the low byte of _flags_1 (ebc1baf5c9b4). */
struct folio___order_byte {
	unsigned char _folio_order;
} __attribute__((preserve_access_index));
struct folio___flags_1 {
	unsigned long _flags_1;
} __attribute__((preserve_access_index));

enum pageflags___head {
	PG_head___head = 0,
};

/* RWF_DONTCACHE (6.14). */
enum pageflags___later {
	PG_dropbehind___later = 0,
};

/*
 * At the end of a function of its own that returns nothing. The compiler leaves anything in r0, also a pointer to the
 * stack, which the verifier takes for what is returned, and refuses.
 */
#define RETURN_NOTHING() asm volatile("r0 = 0" ::: "r0")

/*
 * Verifiers up to 6.1 take only jumps for what begins a loop anew. At the start, so that nothing of it is done in advance at the end of the
 * round before, which would go on without a jump; and behind a call that is the last thing in one.
 */
#define START_OF_LOOP() asm volatile("" ::: "memory")
#define END_OF_LOOP() asm volatile("r0 = 0" ::: "r0")

/* The union d_u lost its name. */
struct dentry___anonymous {
	struct hlist_node d_alias;
} __attribute__((preserve_access_index));
/* Until 6.2 (f1a7941243c1), a thread counted the pages that it mapped by itself first. */
struct task_rss_stat___split {
	int count[4];
} __attribute__((preserve_access_index));
struct task_struct___split {
	struct task_rss_stat___split rss_stat;
} __attribute__((preserve_access_index));
enum { MM_FILEPAGES = 0, MM_SHMEMPAGES = 3 };

enum pageflags___swapbacked {
	PG_swapbacked___swapbacked = 0,
};

/*
 * Any address can be read as what it is said to be (6.2), by plain loads: a tenth of what a probe read costs, and as
 * safe. Kernels with it have folios.
 */
static __always_inline bool can_cast(void)
{
	return bpf_ksym_exists(bpf_rdonly_cast) && bpf_core_type_exists(struct folio);
}

/*
 * A word of the kernel as a number. What is loaded by its own type may be a pointer, with which the verifier allows
 * no arithmetic: so it is read as the first member of something that begins with an unsigned long.
 */
static __always_inline u64 word_at(const void *at)
{
	return bpf_core_cast(at, struct rb_node)->__rb_parent_color;
}

/* The same on every kernel; zero where it cannot be read. */
static __always_inline u64 word_of(const void *at)
{
	u64 word = 0;

	if (can_cast())
		return word_at(at);
	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/* Whether the verifier knows the running task by its type (5.11), so that what it holds is read by plain loads, too. */
static __always_inline bool knows_running(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

/* PF_* of the running task. */
static __always_inline u32 running_flags(void)
{
	if (knows_running())
		return bpf_get_current_task_btf()->flags;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), flags);
}

/* When the running task began: no two have one address and one beginning. Who calls exec and is not the first takes over the first's. */
static __always_inline u64 running_since(void)
{
	if (knows_running())
		return bpf_get_current_task_btf()->start_time;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), start_time);
}

/*
 * The real user of the running task. Not bpf_get_current_uid_gid: who reads from overlayfs does so, for the time, with the rights of
 * whoever has mounted it.
 */
static __always_inline u32 running_user(void)
{
	if (knows_running())
		return bpf_get_current_task_btf()->real_cred->uid.val;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), real_cred, uid.val);
}

/* An argument as a number: the verifier allows no arithmetic on what it knows to be a pointer. */
static __always_inline u64 number(u64 *ctx, u32 n)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + n);
	return value;
}

static __always_inline struct address_space *folio_mapping_of(void *folio)
{
	struct address_space *m = 0;

	if (can_cast())
		m = (void *)word_at(&((struct folio *)folio)->mapping);
	else if (bpf_core_type_exists(struct folio))
		m = BPF_CORE_READ((struct folio *)folio, mapping);
	else
		m = BPF_CORE_READ((struct page___before_folios *)folio, mapping);
	return m;
}

static __always_inline u64 folio_index_of(void *folio)
{
	if (can_cast())
		return bpf_core_cast(folio, struct folio)->index;
	if (bpf_core_type_exists(struct folio))
		return BPF_CORE_READ((struct folio *)folio, index);
	return BPF_CORE_READ((struct page___before_folios *)folio, index);
}

/* log2 of the number of pages. Before folios, files on disk held single pages only. */
static __always_inline u32 folio_order_of(void *folio)
{
	u64 flags = 0;
	u32 head;

	if (!bpf_core_type_exists(struct folio))
		return 0;
	/* The first word is the flags, `unsigned long` or, from 6.18, a struct that wraps one (memdesc_flags_t). */
	if (can_cast())
		flags = word_at(folio);
	else
		bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	head = bpf_core_enum_value(enum pageflags___head, PG_head___head);
	if (!(flags >> head & 1))
		return 0;
	if (bpf_core_field_exists(struct folio___order_byte, _folio_order))
		return BPF_CORE_READ((struct folio___order_byte *)folio, _folio_order);
	if (can_cast())
		return word_at(&((struct folio___flags_1 *)folio)->_flags_1) & 0xff;
	return BPF_CORE_READ((struct folio___flags_1 *)folio, _flags_1) & 0xff;
}

/*
 * The same of an argument of a BTF tracepoint, whose type the verifier knows: plain loads on every kernel, where one
 * of an address takes a call of some sixty instructions before 6.2. What comes out is a pointer, not a number.
 */
static __always_inline struct address_space *mapping_of_argument(void *folio)
{
	if (bpf_core_type_exists(struct folio))
		return ((struct folio *)folio)->mapping;
	return ((struct page___before_folios *)folio)->mapping;
}

/*
 * The lower half of a pointer that the verifier knows, as a number: of all arithmetic with one it allows a subtraction in 32
 * bits. To read the address as a number takes three times as long.
 */
static __always_inline u64 low_half(const void *pointer)
{
	u64 half;

	asm("r1 = %1; w1 -= 0; %0 = r1" : "=r"(half) : "r"(pointer) : "r1");
	return half;
}

static __always_inline u64 index_of_argument(void *folio)
{
	if (bpf_core_type_exists(struct folio))
		return ((struct folio *)folio)->index;
	return ((struct page___before_folios *)folio)->index;
}

static __always_inline u32 order_of_argument(void *folio)
{
	u64 folios = bpf_core_type_exists(struct folio);

	/* The flags: see folio_order_of. One test for both: before folios nothing is large. */
	if (!(*(unsigned long *)folio & folios << bpf_core_enum_value(enum pageflags___head, PG_head___head)))
		return 0;
	if (bpf_core_field_exists(struct folio___order_byte, _folio_order))
		return ((struct folio___order_byte *)folio)->_folio_order;
	return ((struct folio___flags_1 *)folio)->_flags_1 & 0xff;
}

/* The flags of a folio are wrapped since 6.18. */
typedef struct {
	unsigned long f;
} memdesc_flags_t___wrapped;

/*
 * Whether a fault maps all of the folios that it finds: finish_fault and filemap_map_pages do since 6.18, and no type of their own tells so. Not
 * where a page is copied (a store to a private mapping), or where a folio is not all in the mapping: that is taken for mapped, too.
 */
static __always_inline bool maps_folios(void)
{
	return bpf_core_type_exists(memdesc_flags_t___wrapped);
}

/* Memory that goes to swap rather than to a file: anonymous, or of tmpfs. */
static __always_inline bool is_swap_backed(void *folio)
{
	u64 flags = 0;
	u32 bit = bpf_core_enum_value(enum pageflags___swapbacked, PG_swapbacked___swapbacked);

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	return flags >> bit & 1;
}

/* Direction and kind of an iov_iter were bits of one word until 5.14. */
struct iov_iter___type {
	unsigned int type;
} __attribute__((preserve_access_index));

static __always_inline bool is_write(struct iov_iter *iter)
{
	if (bpf_core_field_exists(struct iov_iter, data_source))
		return BPF_CORE_READ(iter, data_source);
	return BPF_CORE_READ((struct iov_iter___type *)iter, type) & 1;
}

static __always_inline u64 pages_in(u64 bytes)
{
	return (bytes + (1ULL << PAGE_SHIFT) - 1) >> PAGE_SHIFT;
}

enum mapping_flags___smallest {
	AS_FOLIO_ORDER_MIN___smallest = 16,
};

/*
 * A file system with blocks larger than a page has no smaller folios (6.12): the bits of a page's number that say where in one of these it
 * lies, by the flags of its mapping.
 */
static __always_inline u64 smallest_of(u64 flags)
{
	if (!bpf_core_enum_value_exists(enum mapping_flags___smallest, AS_FOLIO_ORDER_MIN___smallest))
		return 0;
	return (1ULL << (flags >> bpf_core_enum_value(enum mapping_flags___smallest,
						      AS_FOLIO_ORDER_MIN___smallest) &
			 31)) -
	       1;
}

#endif
