//! What the kernel programs and user space agree on. `bpf/wire.h` is the other half; a test compares them.

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident; )*) => {
        /// The counters kept by the kernel programs, in the order of `enum counter` in `bpf/wire.h`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter { $( $(#[$doc])* $name, )* }
        impl Counter {
            /// All counters, in wire order.
            pub const ALL: &[Counter] = &[ $( Counter::$name, )* ];
        }
    };
}

counters! {
    /// Bytes that reads delivered from the page cache.
    ReadBytes;
    /// Pages present and used before.
    ReadHits;
    /// Pages present thanks to read-ahead only, first use.
    ReadAheadHits;
    /// Pages absent when the call began.
    ReadMisses;
    /// Pages added for a missed access.
    MissFills;
    /// Pages added ahead of a request.
    Prefetched;
    /// Prefetched pages removed unused.
    PrefetchWasted;
    /// Nanoseconds that calls with misses took; only where latency is asked for.
    StallNs;
    /// Pages present but still being read when they were reached.
    Inflight;
    /// Read-ahead windows issued.
    Windows;
    /// Of these, the ones with a page that was there already.
    WindowsCut;
    /// Major faults on file mappings.
    FaultMisses;
    /// Minor faults on file mappings.
    FaultHits;
    /// Pages mapped around a fault.
    FaultAround;
    /// Pages added for a page fault.
    FaultFills;
    /// Bytes that writes put into the page cache.
    WriteBytes;
    /// Pages written that were there.
    WriteHits;
    /// Pages written that were added for it.
    WriteMisses;
    /// Pages of regular files, clean to dirty.
    Dirtied;
    /// `mark_buffer_dirty` events.
    BufferDirtied;
    /// Bytes read past the cache.
    DirectReadBytes;
    /// Bytes written past the cache.
    DirectWriteBytes;
    /// Bytes of direct I/O that went through the cache after all.
    DirectFellBack;
    /// Metadata pages present when looked up.
    MetaHits;
    /// Metadata pages that read-ahead had brought, first use.
    MetaAheadHits;
    /// Metadata pages absent when looked up.
    MetaMisses;
    /// Pages added to a metadata mapping.
    MetaFills;
    /// Pages of metadata, clean to dirty.
    MetaDirtied;
    /// Pages removed by reclaim.
    Evicted;
    /// Pages removed otherwise.
    Removed;
    /// Pages read back after eviction.
    Refaulted;
    /// Pages added by anything else that is not a read.
    OtherFills;
    /// Events lost: no room for the calling thread.
    LostFrames;
    /// Events of threads without a row or a request, though there was room: the kernel refused to hand it out.
    LostBusy;
    /// Direct requests that have ended, but were not seen to begin: whose they were and what they did is not known.
    LostBegun;
    /// Events lost: requests nested deeper than the stack kept for a thread.
    LostDepth;
    /// Pages that a call added, lost and added again: more than it touched.
    LostOrder;
    /// Events lost: no room to remember prefetched pages.
    LostLedger;
    /// Threads without a row of their own: no room in the table.
    LostRows;
    /// Events of files without a row: no room in the table.
    LostFiles;
    /// Asynchronous direct requests whose end the kernel did not tell.
    LostDirect;
    /// Chunks of 64 pages entered in the ledger of prefetched pages.
    LedgerChunks;
    /// Nanoseconds that threads of the command watched waited in reads, for storage. As all that follow, only
    /// where a command is watched.
    WaitRead;
    /// Nanoseconds waited in page faults.
    WaitFault;
    /// Nanoseconds waited in `execve`.
    WaitExec;
    /// Nanoseconds waited in `open`.
    WaitOpen;
    /// Nanoseconds waited in calls that look a name up or change one: `stat`, `readlink`, `unlink` …
    WaitLookup;
    /// Nanoseconds waited in `getdents`.
    WaitDirectory;
    /// Nanoseconds waited in writes, for storage.
    WaitWrite;
    /// Nanoseconds waited in `fsync` and its like, and `close`.
    WaitSync;
    /// Nanoseconds waited for anything else: pipes, locks, timers, children.
    WaitOther;
    /// Nanoseconds that threads could have run, but had no processor.
    WaitCpu;
    /// Nanoseconds that writers were told to pause, since too much was dirty.
    ThrottleNs;
    /// Names looked up that the dentry cache did not have.
    Lookups;
    /// Nanoseconds of work on these look-ups, without waiting.
    LookupNs;
    /// Of the look-ups in the file system, those whose end was seen.
    LookupsEnded;
}

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();

/// How many groups of counters a row has a mark for each.
pub const GROUPS: usize = 4;

/// Where the groups of counters begin, and the end of the last. What reads of files count is in the first, a line of the
/// processor's cache.
pub const GROUP_ENDS: [usize; GROUPS + 1] = [0, 8, 16, 32, COUNTERS];

/// What is counted for each file, in the order of `enum file_counter`.
pub const FILE_COUNTERS: &[Counter] = &[
    Counter::ReadBytes,
    Counter::ReadHits,
    Counter::ReadAheadHits,
    Counter::ReadMisses,
    Counter::Prefetched,
    Counter::FaultMisses,
    Counter::FaultHits,
    Counter::WriteHits,
    Counter::WriteMisses,
    Counter::Dirtied,
    Counter::DirectReadBytes,
    Counter::DirectWriteBytes,
    Counter::DirectFellBack,
];

/// `row.state` of a row that nobody has.
pub const ROW_FREE: u32 = 0;
/// `row.state` of a row whose thread is gone or has another name now.
pub const ROW_ENDED: u32 = 2;
/// `file_row.state` of a row that nobody adds to any more.
pub const FILE_ENDED: u32 = 2;
/// Buckets of a latency histogram: the first is below 256 ns, the i-th from 2^(7+i) ns on.
pub const LATENCY_BUCKETS: usize = 32;
/// Buckets of the histogram of read-ahead windows: the i-th is 2^i pages and more.
pub const WINDOW_BUCKETS: usize = 16;
