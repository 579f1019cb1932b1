/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the kernel programs and user space agree on. src/wire.rs is the other half; a test compares them. */
#ifndef CACHETOP_WIRE_H
#define CACHETOP_WIRE_H

enum counter {
	C_READ_CALLS,
	C_READ_BYTES,
	C_READ_HITS,
	C_READ_AHEAD_HITS,
	C_READ_MISSES,
	C_MISS_FILLS,
	C_PREFETCHED,
	C_PREFETCH_WASTED,
	C_DIRTIED,
	C_BUFFER_DIRTIED,
	C_EVICTED,
	C_REMOVED,
	C_FAULT_FILLS,
	C_OTHER_FILLS,
	C_META_FILLS,
	C_META_DIRTIED,
	C_LOST_FRAMES,
	C_LOST_DEPTH,
	C_LOST_LEDGER,
	C_LOST_PROCESSES,
	C_LEDGER_CHUNKS,
	C_MAX,
};

#endif
