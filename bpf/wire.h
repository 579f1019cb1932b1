/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the kernel programs and user space agree on. src/wire.rs is the other half; a test compares them. */
#ifndef CACHETOP_WIRE_H
#define CACHETOP_WIRE_H

enum counter {
	C_READ_BYTES,
	C_READ_HITS,
	C_READ_AHEAD_HITS,
	C_READ_MISSES,
	C_MISS_FILLS,
	C_PREFETCHED,
	C_PREFETCH_WASTED,
	C_STALL_NS,
	C_INFLIGHT,
	C_WINDOWS,
	C_WINDOWS_CUT,
	C_FAULT_MISSES,
	C_FAULT_HITS,
	C_FAULT_AROUND,
	C_FAULT_FILLS,
	C_WRITE_BYTES,
	C_WRITE_HITS,
	C_WRITE_MISSES,
	C_DIRTIED,
	C_BUFFER_DIRTIED,
	C_DIRECT_READ_BYTES,
	C_DIRECT_WRITE_BYTES,
	C_DIRECT_FELL_BACK,
	C_META_HITS,
	C_META_AHEAD_HITS,
	C_META_MISSES,
	C_META_FILLS,
	C_META_DIRTIED,
	C_EVICTED,
	C_REMOVED,
	C_REFAULTED,
	C_OTHER_FILLS,
	C_LOST_FRAMES,
	C_LOST_DEPTH,
	C_LOST_ORDER,
	C_LOST_LEDGER,
	C_LOST_ROWS,
	C_LEDGER_CHUNKS,
	C_MAX,
};

enum row_state {
	ROW_FREE,
	ROW_LIVE,
	ROW_ENDED, /* its thread is gone or became another program: user space reads it once more and frees it */
};

/* What one thread did under one name. Written by that thread alone, but for `touched`. */
struct row {
	unsigned int state;
	unsigned int touched; /* set after each event; cleared by user space before it reads */
	unsigned long long
		entered; /* when the read call began that the thread is in, ns; 0: none, or not timed */
	unsigned int depth; /* frames on its stack */
	unsigned int tgid;
	unsigned int tid;
	unsigned int uid;
	unsigned int number; /* of the row in the table */
	unsigned int made; /* counts rows made, so that user space knows a row that was freed and made anew */
	unsigned long long born; /* ns since boot; of two rows of a thread the later has its newer name */
	unsigned long long cgroup; /* inode number of its directory in cgroupfs */
	unsigned long long scratch;
	char comm[16];
	char process[16]; /* comm of the thread group's leader */
	unsigned long long v[C_MAX];
};

/* Latency of read calls in powers of two: bucket 0 is below 256 ns, bucket i from 2^(7+i) ns on. */
#define LATENCY_BUCKETS 32
/* Read-ahead windows: bucket i is 2^i pages and more. */
#define WINDOW_BUCKETS 16

struct histograms {
	unsigned long long hit[LATENCY_BUCKETS];
	unsigned long long miss[LATENCY_BUCKETS];
	unsigned long long window[WINDOW_BUCKETS];
};

#endif
