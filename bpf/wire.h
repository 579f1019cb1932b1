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
	C_LOST_BUSY,
	C_LOST_BEGUN,
	C_LOST_DEPTH,
	C_LOST_ORDER,
	C_LOST_LEDGER,
	C_LOST_ROWS,
	C_LOST_FILES,
	C_LOST_DIRECT,
	C_LEDGER_CHUNKS,
	C_WAIT_READ,
	C_WAIT_FAULT,
	C_WAIT_EXEC,
	C_WAIT_OPEN,
	C_WAIT_LOOKUP,
	C_WAIT_DIRECTORY,
	C_WAIT_WRITE,
	C_WAIT_SYNC,
	C_WAIT_OTHER,
	C_WAIT_CPU,
	C_THROTTLE_NS,
	C_LOOKUPS,
	C_LOOKUP_NS,
	C_LOOKUPS_ENDED,
	C_MAX,
};

enum row_state {
	ROW_FREE,
	ROW_LIVE,
	ROW_ENDED, /* its thread is gone or became another program: user space reads it once more and frees it */
};

/* Counters are marked in groups when they change: those of reads, a line of the processor's cache, are the first. */
#define ROW_GROUP(c) ((c) < 8 ? 0 : (c) < 16 ? 1 : (c) < 32 ? 2 : 3)

/*
 * What one thread did under one name. Written by that thread alone, but for `touched`. The first 64 bytes are what
 * every event needs and every tick looks at, the counters of reads begin a line of the processor's cache.
 */
struct row {
	unsigned int state;
	unsigned char touched[4]; /* by ROW_GROUP: set after each event; cleared by user space before it reads */
	unsigned int made; /* counts rows made, so that user space knows a row that was freed and made anew */
	unsigned int
		call; /* one more than the number of its thread's request (pending.h); 0: not looked up yet */
	unsigned int depth; /* frames on its stack */
	unsigned int waited; /* for pages in flight (flight.h); with `depth` in one word: reads ask for both */
	unsigned int tgid;
	unsigned int tid;
	unsigned int uid;
	unsigned int number; /* of the row in the table */
	unsigned long long born; /* ns since boot; of two rows of a thread the later has its newer name */
	unsigned long long task; /* address of its thread; 0: that has ended it, or must look who it is by now */
	unsigned int file; /* number of the file row that the thread used last */
	unsigned int run; /* of the command that is watched, where its process belongs to one; else 0 */

	char comm[16];
	char process[16]; /* comm of the thread group's leader */
	unsigned long long cgroup; /* inode number of its directory in cgroupfs */
	unsigned long long
		owner; /* process, name, user and cgroup as one number: whose files are counted together */
	unsigned long long scratch;
	unsigned long long
		entered; /* when the read call began that the thread is in, ns; 0: none, or not timed */

	unsigned long long v[C_MAX];
	unsigned long long off_at; /* when it left the processor, ns; 0: it runs */
	unsigned long long off_sum; /* ns that it was not on a processor */
	unsigned long long lookup_at; /* when the file system was asked for a name; 0: it was not */
	unsigned long long lookup_off; /* off_sum then */
	unsigned long long off_why; /* a counter: why the thread left the processor */
	unsigned long long wanted; /* what the thread does is asked for (wanted.h) */
	unsigned long long
		direct; /* the direct request that it begins, where only tracepoints attach (direct.h) */
};

/* What is counted for each file. */
enum file_counter {
	FC_READ_BYTES,
	FC_READ_HITS,
	FC_READ_AHEAD_HITS,
	FC_READ_MISSES,
	FC_PREFETCHED,
	FC_FAULT_MISSES,
	FC_FAULT_HITS,
	FC_WRITE_HITS,
	FC_WRITE_MISSES,
	FC_DIRTIED,
	FC_DIRECT_READ_BYTES,
	FC_DIRECT_WRITE_BYTES,
	FC_DIRECT_FELL_BACK,
	FC_MAX,
};

enum file_state {
	FILE_FREE,
	FILE_LIVE,
	FILE_ENDED, /* user space reads it once more and frees it */
};

/* What one process did to one file. Its threads add to it atomically. */
struct file_row {
	unsigned int state;
	unsigned int touched; /* set after each event; cleared by user space before it reads */
	unsigned long long mapping; /* 0: nobody may add to it any more */
	unsigned long long owner;
	unsigned long long inode;
	unsigned int generation;
	unsigned int dev; /* of the superblock, in the kernel's encoding */
	unsigned int block; /* for a block device read as a file, the device */
	unsigned int links; /* names that the file had when it was used last */
	unsigned int made;
	unsigned int tgid;
	unsigned int uid;
	unsigned int run; /* as in struct row */
	unsigned long long born; /* ns since boot */
	unsigned long long cgroup;
	char process[16];
	unsigned long long v[FC_MAX];
};

enum file_how {
	FILE_UNNAMED,
	FILE_NAMED, /* from the root of the file system */
	FILE_NAME_CUT, /* the end of the path only */
	FILE_LOOSE, /* no directory has it */
};

#define FILE_NAME 512

struct file_name {
	unsigned int how;
	unsigned int length;
	char text[FILE_NAME];
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
