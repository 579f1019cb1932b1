/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* How long read calls take, and the sizes of read-ahead windows: histograms of each row, in powers of two. */
#ifndef CACHETOP_LATENCY_H
#define CACHETOP_LATENCY_H

#include "thread.h"

/* Set before load: somebody wants to know. Two readings of the clock are most of what a warm read costs us. */
const volatile bool with_latency = false;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct histograms);
} histograms SEC(".maps");

static __always_inline struct histograms *histograms_of(struct row *row)
{
	u32 n = row->number;

	return bpf_map_lookup_elem(&histograms, &n);
}

/* log2, rounded down. */
static __always_inline u32 log2_of(u64 x)
{
	u32 n = 0;

	if (x >> 32) {
		x >>= 32;
		n += 32;
	}
	if (x >> 16) {
		x >>= 16;
		n += 16;
	}
	if (x >> 8) {
		x >>= 8;
		n += 8;
	}
	if (x >> 4) {
		x >>= 4;
		n += 4;
	}
	if (x >> 2) {
		x >>= 2;
		n += 2;
	}
	return n + (x >> 1);
}

/* The bucket of what took less than 65536 ns, by its multiple of 256: nearly all of it, without a search. */
static const u8 short_buckets[256] = {
	[1] = 1,	 [2 ... 3] = 2,	  [4 ... 7] = 3,    [8 ... 15] = 4,
	[16 ... 31] = 5, [32 ... 63] = 6, [64 ... 127] = 7, [128 ... 255] = 8,
};

static __noinline u64 long_bucket(u64 ns)
{
	u32 n = log2_of(ns) - 7;

	return n < LATENCY_BUCKETS ? n : LATENCY_BUCKETS - 1;
}

static __always_inline void begin_latency(void)
{
	struct row *row = own_row(true);

	if (row)
		row->entered = bpf_ktime_get_ns();
}

static __always_inline void count_latency(struct row *row, bool missed)
{
	struct histograms *h;
	u64 ns;
	u32 n;

	if (!with_latency || !row->entered)
		return;
	ns = bpf_ktime_get_ns() - row->entered;
	row->entered = 0;
	if (missed)
		row->v[C_STALL_NS] += ns;
	h = histograms_of(row);
	if (!h)
		return;
	n = ns >> 16 ? long_bucket(ns) : short_buckets[ns >> 8 & 255];
	if (missed)
		h->miss[n & (LATENCY_BUCKETS - 1)]++;
	else
		h->hit[n & (LATENCY_BUCKETS - 1)]++;
	mark_group(row, ROW_GROUP(C_STALL_NS));
}

#endif
