/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the kernel programs and user space agree on. build.rs makes the other half from this: counters, states and sizes
 * have the same names there, in the manner of Rust, and what stands behind a name is its documentation.
 */
#ifndef CACHETOP_WIRE_H
#define CACHETOP_WIRE_H

enum counter {
	C_READ_BYTES, /* bytes that reads delivered from the page cache */
	C_READ_HITS, /* pages present and used before */
	C_READ_AHEAD_HITS, /* pages present thanks to read-ahead only, first use */
	C_READ_MISSES, /* pages absent when the call began */
	C_MISS_FILLS, /* pages added for a missed access */
	C_PREFETCHED, /* pages added ahead of a request */
	C_READ_CALLS, /* reads that delivered bytes from the page cache */
	C_STALL_NS, /* nanoseconds that calls with misses took; only where latency is requested */
	C_INFLIGHT, /* pages present but still being read when they were reached */
	C_WINDOWS, /* read-ahead windows issued */
	C_WINDOWS_CUT, /* of these, the ones with a page that was there already */
	C_FAULT_MISSES, /* major faults on file mappings */
	C_FAULT_HITS, /* minor faults on file mappings */
	C_FAULT_AROUND, /* pages mapped around a fault */
	C_FAULT_FILLS, /* pages added for a page fault */
	C_READ_MISSED_CALLS, /* of these, the ones with a page that was absent */
	C_WRITE_BYTES, /* bytes that writes put into the page cache */
	C_WRITE_HITS, /* pages written that were there */
	C_WRITE_MISSES, /* pages written that were added for it */
	C_DIRTIED, /* pages of regular files, clean to dirty */
	C_BUFFER_DIRTIED, /* `mark_buffer_dirty` events */
	C_DIRECT_READ_BYTES, /* bytes read past the cache */
	C_DIRECT_WRITE_BYTES, /* bytes written past the cache */
	C_DIRECT_FELL_BACK, /* bytes of direct I/O that went through the cache after all */
	C_META_HITS, /* metadata pages present when looked up */
	C_META_AHEAD_HITS, /* metadata pages that read-ahead had brought, first use */
	C_META_MISSES, /* metadata pages absent when looked up */
	C_META_FILLS, /* pages added to a metadata mapping */
	C_META_DIRTIED, /* pages of metadata, clean to dirty */
	C_EVICTED, /* pages removed by reclaim */
	C_REMOVED, /* pages removed otherwise */
	C_REFAULTED, /* pages read back after eviction */
	C_OTHER_FILLS, /* pages added by anything else that is not a read */
	C_PREFETCH_WASTED, /* prefetched pages removed unused */
	C_LOST_FRAMES, /* events lost: no room for the calling thread */
	C_LOST_BUSY, /* events of threads without a row or a request: there was room, but the kernel refused it */
	C_LOST_BEGUN, /* direct requests that have ended, but were not seen to begin: not known what they did */
	C_LOST_DEPTH, /* events lost: requests nested deeper than the stack kept for a thread */
	C_LOST_ORDER, /* pages that a call added, lost and added again: more than it touched */
	C_LOST_LEDGER, /* events lost: no room to remember prefetched pages */
	C_LOST_ROWS, /* threads without a row of their own: no room in the table */
	C_LOST_FILES, /* events of files without a row: no room in the table */
	C_LOST_DIRECT, /* asynchronous direct requests whose end the kernel did not tell */
	C_LEDGER_CHUNKS, /* chunks of 64 pages entered in the ledger of prefetched pages */
	C_WAIT_READ, /* ns that threads of a command that is watched waited in reads; as all that follow */
	C_WAIT_FAULT, /* nanoseconds waited in page faults */
	C_WAIT_EXEC, /* nanoseconds waited in `execve` */
	C_WAIT_OPEN, /* nanoseconds waited in `open` */
	C_WAIT_LOOKUP, /* nanoseconds waited in calls that look a name up or change one, such as `stat`, `unlink` */
	C_WAIT_DIRECTORY, /* nanoseconds waited in `getdents` */
	C_WAIT_WRITE, /* nanoseconds waited in writes, for storage */
	C_WAIT_SYNC, /* nanoseconds waited in `fsync` and its like, and `close` */
	C_WAIT_PEER, /* nanoseconds waited where signals wake: for pipes, sockets, terminals, events, signals */
	C_WAIT_TIMER, /* nanoseconds slept for a time, as `sleep` does */
	C_WAIT_LOCK, /* nanoseconds waited for locks: futexes, file locks, semaphores */
	C_WAIT_CHILD, /* nanoseconds waited for children */
	C_WAIT_COMPLETION, /* nanoseconds waited for asynchronous I/O to complete: io_uring, `io_getevents` */
	C_WAIT_OTHER, /* nanoseconds waited for anything else */
	C_WAIT_CPU, /* nanoseconds that threads could have run, but had no processor */
	C_WAIT_WOKEN, /* of all other waits: nanoseconds after the end of it, in which there was no processor */
	C_THROTTLE_NS, /* nanoseconds that writers were told to pause, since too much was dirty */
	C_LOOKUPS, /* names looked up that the dentry cache did not have */
	C_LOOKUP_NS, /* nanoseconds of work on these look-ups, without waiting */
	C_LOOKUPS_ENDED, /* of the look-ups in the file system, those whose end was seen */
	C_MAX,
};

enum row_state {
	ROW_FREE, /* nobody has it */
	ROW_LIVE, /* a thread adds to it */
	ROW_ENDED, /* its thread is gone or became another program: user space reads it once more and frees it */
};

/* Counters are marked in groups when they change: those of reads, a line of the processor's cache, are the first. */
#define ROW_GROUP(c) ((c) < 8 ? 0 : (c) < 16 ? 1 : (c) < 32 ? 2 : 3)

/* Rows of which user space maps all or none: a whole number of pages of memory, whatever the size of a row. */
#define ROWS_MAPPED 512

/* What a plain request has delivered, as the tick saw it: to be added to the counters while `plain_mark` is this one. */
struct row_looked {
	unsigned long long mark;
	unsigned long long bytes;
	unsigned long long hits;
	unsigned int missed;
	unsigned int inflight;
	unsigned int ahead;
	unsigned int writes; /* it is a write */
};

/* Reads that the thread counted where nobody else counts for it (quick.h): to be added to the counters. */
struct row_own {
	unsigned long long calls;
	unsigned long long bytes;
	unsigned long long hits;
	unsigned int idle; /* nothing of the thread waits to be told apart */
};

/* The latter where only tracepoints attach; there is no plain request there, and `plain_mark` is 0. */
union row_beside {
	struct row_looked looked;
	struct row_own own;
};

/* A read-ahead window that a thread fills. What holds for all of its pages is found out when it begins. */
struct window {
	unsigned long long mapping;
	unsigned long long first;
	unsigned long long last;
	unsigned int added;
	unsigned short kind; /* WINDOW_* */
	unsigned short word; /* of the ledger: in which the thread has set bits last, in whatever window */
};

/* In `off_why`, beside C_WAIT_CHILD: for a child that goes on, which has what it needs of its parent (vfork). */
#define OFF_VFORK 32768
/* In `off_why` of a thread that runs: the kernel is about to have it pause, since too much is dirty. */
#define OFF_THROTTLED 16384
/* The counter in it: all bits below. */
#define OFF_WHY 16383

/*
 * What one thread did under one name. Written by that thread alone, but for `touched`, and for page faults, which
 * the tick may count (plainfault.h): by atomics. The first 64 bytes are what every event needs and every tick looks at,
 * the counters of reads begin a line of the processor's cache.
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
	unsigned long long
		began; /* when its thread did, task_struct.start_time: with `task`, no other one is meant */
	unsigned long long
		owner; /* process, its beginning, name, user and cgroup as one number: whose files are counted together */
	unsigned long long scratch;
	unsigned long long
		entered; /* when the read call began that the thread is in, ns; 0: none, or not timed */

	unsigned long long v[C_MAX];
	unsigned long long cgroup; /* inode number of its directory in cgroupfs */
	unsigned long long off_at; /* when it left the processor, ns; 0: it runs */
	unsigned short off_why; /* a counter: why the thread left the processor; with OFF_* */
	unsigned short wanted; /* what the thread does is to be counted (wanted.h) */
	unsigned int ledger_word; /* in which the thread has looked for prefetched pages last (ledger.h) */
	unsigned long long
		direct; /* the direct request that it begins, where only tracepoints attach (direct.h) */
	unsigned long long writing; /* the write that it is in, which has no frame yet (thread.h); 0: none */
	unsigned long long write_pos; /* where that begins */
	unsigned long long write_count; /* and how many bytes are offered */
	struct window window;
	/* Asked once, when the row is made: of a process that lives for a moment nobody can tell afterwards. */
	unsigned long long begun; /* when its process began, task_struct.start_time: of one id it tells which */
	unsigned long long parent_begun; /* the same of the process that is its parent then */
	unsigned int parent; /* the thread-group id of that one */
	unsigned int sketch; /* one more than its owner's number, or no room (sketch.h); 0: not looked for */
	char parent_name[16];
	/* A read or write that has begun and is counted once it has ended, without a hook there (plain.h). */
	unsigned long long plain_mark; /* odd while the thread counts it or begins another */
	unsigned long long plain_bytes; /* what it delivers, unless it is cut short; 0: none is to be counted */
	unsigned long long plain_pos;
	unsigned long long plain_mapping;
	union {
		struct {
			/* Bytes and calls of its kind that the kernel had counted when it began. */
			unsigned long long plain_chars;
			unsigned long long plain_calls;
			unsigned long long plain_iter; /* the buffer's iov_iter */
			unsigned long long plain_task; /* as `task`, also while that is 0 */
		};
		/* Of a thread that is followed: no request is counted so there. */
		struct {
			unsigned long long off_sum; /* ns that it was not on a processor */
			/* When the file system was asked to look a name up, less off_sum; 0: it was not. */
			unsigned long long lookup_at;
			unsigned long long
				lookup_in; /* the directory in which that name was looked for, its dentry */
			/* One more than all its life's ns without a processor, when it left one last. */
			unsigned long long queued;
		};
	};
	union {
		struct {
			unsigned int plain_framed; /* something happened inside it: it has a frame */
			unsigned short plain_writes; /* it is a write */
			unsigned short
				plain_ahead; /* a read, all of whose pages read-ahead had brought: their first use */
		};
		unsigned long long plain_kind; /* these, as one word */
	};
	unsigned int plain_file; /* number of its file's row, where files are asked for, and that row's `made` */
	unsigned int plain_file_made;
	unsigned long long
		plain_fault; /* a page fault that is counted once it has ended (plainfault.h); 0: none */
	union row_beside beside;
};

/* What is counted for each file: a counter of the same name. */
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

/* Parts of a file of which it is known whether they were read. */
#define FILE_PARTS 24

enum file_state {
	FILE_FREE, /* nobody has it */
	FILE_LIVE, /* threads add to it */
	FILE_ENDED, /* nobody finds it any more; what was under way may still be added */
	FILE_CLOSED, /* nothing is added any more: user space reads it once more and frees it */
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
	unsigned int sketch; /* as in struct row */
	/*
	 * Which parts of the file were read, where a command is followed: a bit for each, and above FILE_PARTS log2 of the pages
	 * of one, so that the file has no more of them when the row is made.
	 */
	unsigned int parts;
	unsigned long long next; /* byte behind the last read of it */
	unsigned int
		stretches; /* reads that did not begin there: of each, and of those that go on from it, each byte is read once */
	unsigned int reserved;
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

/* Of a row. They begin again at zero after the last number: user space reads a row long before that happens twice. */
struct histograms {
	unsigned int hit[LATENCY_BUCKETS];
	unsigned int miss[LATENCY_BUCKETS];
	unsigned int window[WINDOW_BUCKETS];
};

/* How many things the monitor has done at once (chores.h). */
#define CHORES 64

enum chore {
	CHORE_FREE_ROWS, /* hands back the row `a` */
	CHORE_SPARE_ROWS, /* the same on the other stack */
	CHORE_FREE_FILES, /* the same of files */
	CHORE_FREE_WORDS, /* hands back the word `a` of the ledger */
	CHORE_END_FILES, /* nobody finds the row of file `a` any more; then `b` is 1; 0: it has been used just now */
	CHORE_TAKE_WORDS, /* takes the word `a` out of the ledger if it is empty; then `b` is 1, else 0 */
	CHORE_COPY_NAME, /* copies the name of file `a` */
	CHORE_COPY_LATENCY, /* copies the histograms of row `a`; if `b` is 1 they begin anew instead */
	CHORE_RUN_OF, /* `b` is the run of the process `a`, or 0 */
};

struct chore_item {
	unsigned long long a;
	unsigned long long b;
};

struct chores {
	unsigned int kind;
	unsigned int count;
	unsigned int done; /* how many were done before one was refused */
	unsigned int reserved;
	struct chore_item items[CHORES];
	struct file_name name;
	struct histograms latency;
};

#endif
