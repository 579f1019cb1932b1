//! The figures of the product: one definition each, used by every view.
//!
//! A figure is a number a person reads (`hits`, `misses`, …). A [`Counter`](crate::sample::Counter) is what
//! the kernel programs add up. [`Figures`] is made from the difference of two counter sets in
//! [`crate::model`] and nowhere else.

/// How a figure is written for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pages of the machine's page size (`sysconf(_SC_PAGESIZE)`).
    Pages,
    /// Bytes.
    Bytes,
    /// A number of events.
    Events,
    /// Nanoseconds.
    Nanoseconds,
}

macro_rules! figures {
    ($( $(#[$doc:meta])* $name:ident = $group:literal . $key:literal, $unit:ident, $text:literal; )*) => {
        /// Every figure of the contract, in the order in which views list them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Figure { $( $(#[$doc])* $name, )* }

        impl Figure {
            /// All figures, in order.
            pub const ALL: &[Figure] = &[ $( Figure::$name, )* ];
            /// The JSON group that holds the figure.
            #[must_use]
            pub const fn group(self) -> &'static str { match self { $( Figure::$name => $group, )* } }
            /// The key inside its JSON group.
            #[must_use]
            pub const fn key(self) -> &'static str { match self { $( Figure::$name => $key, )* } }
            /// The unit of the figure.
            #[must_use]
            pub const fn unit(self) -> Unit { match self { $( Figure::$name => Unit::$unit, )* } }
            /// One line that says what is counted.
            #[must_use]
            pub const fn about(self) -> &'static str { match self { $( Figure::$name => $text, )* } }
        }
    };
}

figures! {
    /// Pages covered by read calls.
    Accesses = "read"."accesses", Pages, "pages covered by the byte ranges that read calls delivered";
    /// Pages that had been used before.
    Hits = "read"."hits", Pages, "accesses whose page was cached and had been used before";
    /// First uses of prefetched pages.
    ReadaheadHits = "read"."readahead_hits", Pages, "first use of a page that only read-ahead had brought in";
    /// Pages that were not cached when the call began.
    Misses = "read"."misses", Pages, "accesses whose page was not cached when the call began";
    /// Bytes delivered by buffered reads.
    ReadBytes = "read"."bytes", Bytes, "bytes delivered by reads that went through the page cache";
    /// Time in calls that missed.
    StallNs = "read"."stall_ns", Nanoseconds, "time read calls that missed spent in the call";
    /// Pages still being read when reached.
    Inflight = "read"."inflight", Pages, "of the hits, pages still being read from the device when they were reached";
    /// Pages added ahead of the request.
    ReadaheadPages = "readahead"."pages", Pages, "pages added to the cache ahead of the request that caused it";
    /// Prefetched pages thrown away unused.
    ReadaheadWasted = "readahead"."wasted", Pages, "prefetched pages evicted or invalidated without ever being used";
    /// Pages that reading brought in.
    Fills = "readahead"."fills", Pages, "pages that reading added to the cache: those missed and those prefetched";
    /// Read-ahead windows.
    Windows = "readahead"."windows", Events, "read-ahead windows issued";
    /// Read-ahead windows that met a cached page.
    WindowsCut = "readahead"."windows_cut", Events, "of these, windows with a page that was cached already: split into smaller reads";
    /// Major faults on file mappings.
    FaultMisses = "fault"."misses", Pages, "file-mapping faults whose page was not cached (major)";
    /// Minor faults on file mappings.
    FaultHits = "fault"."hits", Pages, "file-mapping faults whose page was cached (minor)";
    /// Pages mapped around a fault.
    FaultAround = "fault"."around", Pages, "pages mapped without a fault of their own";
    /// Pages covered by write calls.
    WriteAccesses = "write"."accesses", Pages, "pages covered by the byte ranges that write calls took";
    /// Pages present when written.
    WriteHits = "write"."hits", Pages, "write accesses whose page was cached";
    /// Pages added by writing.
    WriteMisses = "write"."misses", Pages, "write accesses whose page was not cached";
    /// Clean pages that became dirty.
    Dirtied = "write"."dirtied", Pages, "pages of files that went from clean to dirty";
    /// Buffer-dirty events.
    BufferDirtied = "write"."buffer_dirtied", Events, "mark_buffer_dirty events (metadata and ext2/3/4 buffers)";
    /// Bytes read past the cache.
    DirectReadBytes = "direct"."read_bytes", Bytes, "bytes read with O_DIRECT that really bypassed the cache";
    /// Bytes written past the cache.
    DirectWriteBytes = "direct"."write_bytes", Bytes, "bytes written with O_DIRECT that really bypassed the cache";
    /// Bytes of direct I/O that went through the cache.
    DirectFellBack = "direct"."fell_back_bytes", Bytes, "bytes asked for with O_DIRECT that went through the cache after all";
    /// Metadata accesses.
    MetaAccesses = "meta"."accesses", Pages, "accesses through a block device's own mapping";
    /// Metadata hits.
    MetaHits = "meta"."hits", Pages, "metadata accesses that were cached";
    /// First use of prefetched metadata.
    MetaReadaheadHits = "meta"."readahead_hits", Pages, "metadata accesses that read-ahead had brought in";
    /// Metadata misses.
    MetaMisses = "meta"."misses", Pages, "metadata accesses that were not cached";
    /// Pages reclaimed.
    Evicted = "cache"."evicted", Pages, "pages removed from the cache by memory reclaim";
    /// Pages removed otherwise.
    Removed = "cache"."removed", Pages, "pages removed by truncate, unlink, invalidation or drop_caches";
    /// Pages read back after eviction.
    Refaulted = "cache"."refaulted", Pages, "pages read back in after eviction";
}

/// Number of figures.
pub const FIGURES: usize = Figure::ALL.len();

/// One value for each figure; `None` is "cannot be known on this kernel".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures([Option<u64>; FIGURES]);

impl Default for Figures {
    fn default() -> Self {
        Self::unknown()
    }
}

impl Figures {
    /// All figures unknown.
    #[must_use]
    pub const fn unknown() -> Self {
        Self([None; FIGURES])
    }

    /// The value of a figure, `None` if this kernel cannot give it.
    #[must_use]
    pub const fn get(&self, figure: Figure) -> Option<u64> {
        self.0[figure as usize]
    }

    /// Sets a figure.
    pub const fn set(&mut self, figure: Figure, value: Option<u64>) {
        self.0[figure as usize] = value;
    }

    /// `hits / accesses`; `None` when there was no access or when either is unknown.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn hit_ratio(&self) -> Option<f64> {
        match (self.get(Figure::Hits), self.get(Figure::Accesses)) {
            (Some(hits), Some(accesses)) if accesses > 0 => Some(hits as f64 / accesses as f64),
            _ => None,
        }
    }
}
