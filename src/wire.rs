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
    /// Read calls that delivered at least a byte through the page cache.
    ReadCalls;
    /// Bytes they delivered.
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
    /// Pages of regular files, clean to dirty.
    Dirtied;
    /// `mark_buffer_dirty` events.
    BufferDirtied;
    /// Pages removed by reclaim.
    Evicted;
    /// Pages removed otherwise.
    Removed;
    /// Pages added for a page fault.
    FaultFills;
    /// Pages added by writing or by anything else that is not a read.
    OtherFills;
    /// Pages added to a metadata mapping.
    MetaFills;
    /// Pages of metadata, clean to dirty.
    MetaDirtied;
    /// Events lost: no room for the calling thread's request.
    LostFrames;
    /// Events lost: requests nested deeper than the stack kept for a thread.
    LostDepth;
    /// Events lost: no room to remember prefetched pages.
    LostLedger;
    /// Events lost to rows (not to totals): no room in the process table.
    LostProcesses;
    /// Chunks of 64 pages entered in the ledger of prefetched pages.
    LedgerChunks;
}

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();
