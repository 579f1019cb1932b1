//! The figures of the product: one definition each, used by every view.
//!
//! A figure is a number a person reads (`hits`, `misses`, …). A [`Counter`] is what the kernel programs add up.
//! [`Figures`] is made from the difference of two counter sets in [`crate::model`] and nowhere else. Names, sums, scope,
//! columns and help are made from the table below; so are the JSON, its schema and what a plan says of it.
//!
//! To add a figure, write its entry, and `UPDATE_SCHEMA=1 cargo test --lib` to publish it. A counter that is new
//! is a line in `bpf/wire.h`, and where it is counted. Evidence that is new is an arm in `plan/worth.rs`.

use crate::wire::Counter;
use crate::wire::FILE_COUNTERS;

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
    /// A number of calls, of which other figures say what they did.
    Calls,
}

impl Unit {
    /// Whether rows are ranked by what is counted in it: bytes and times would drown the pages.
    #[must_use]
    pub const fn ranks(self) -> bool {
        matches!(self, Unit::Pages | Unit::Events)
    }

    /// Its name, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Pages => "pages",
            Unit::Bytes => "bytes",
            Unit::Events => "events",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Calls => "calls",
        }
    }
}

/// What can have a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The cache as a whole: what it loses is nobody's doing, the pages of one are reclaimed by another.
    Cache,
    /// Threads, and with them the command that is watched, but rows do not list it.
    Thread,
    /// Rows of all kinds. Those of files have it where all its counters are counted for each file.
    Row,
}

/// What is seen for a figure to be known: what it is worth is derived from that (`plan/worth.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Read calls and the pages added inside them.
    Reads,
    /// Read calls with the clock at their beginning and end.
    TimedReads,
    /// Readers waiting for a page on its way.
    Flights,
    /// Pages added, and why.
    Fills,
    /// Prefetched pages used or gone.
    Waste,
    /// Read-ahead windows.
    Windows,
    /// Faults served by reading.
    Faults,
    /// Faults served from the cache.
    CachedFaults,
    /// Pages mapped around a fault.
    MappedAround,
    /// Write calls and the pages added inside them.
    Writes,
    /// Pages getting dirty.
    Dirtied,
    /// Buffers getting dirty.
    Buffers,
    /// Requests past the cache.
    Direct,
    /// Requests that should have gone past the cache.
    FellBack,
    /// Blocks looked up.
    Metadata,
    /// Pages leaving the cache.
    Removals,
    /// Pages read back in.
    Refaults,
}

macro_rules! figures {
    ($(
        $name:ident = $group:literal . $key:literal, $unit:ident, sum [$($counter:ident),+], of $scope:ident,
            from $evidence:ident, column $id:literal $title:literal, metric $metric:literal, $text:literal;
    )*) => {
        /// Every figure of the contract, in the order in which views list them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Figure { $( #[doc = $text] $name, )* }

        impl Figure {
            /// All figures, in order.
            pub const ALL: &[Figure] = &[ $( Figure::$name, )* ];
            /// The JSON group that holds the figure.
            #[must_use]
            pub const fn group(self) -> &'static str { match self { $( Figure::$name => $group, )* } }
            /// The key inside its JSON group.
            #[must_use]
            pub const fn key(self) -> &'static str { match self { $( Figure::$name => $key, )* } }
            /// Its stable name, `group.key`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Figure::$name => concat!($group, ".", $key), )* }
            }
            /// The unit of the figure.
            #[must_use]
            pub const fn unit(self) -> Unit { match self { $( Figure::$name => Unit::$unit, )* } }
            /// The counters that it is the sum of.
            #[must_use]
            pub const fn counters(self) -> &'static [Counter] {
                match self { $( Figure::$name => &[ $( Counter::$counter, )+ ], )* }
            }
            /// What can have it.
            #[must_use]
            pub const fn scope(self) -> Scope { match self { $( Figure::$name => Scope::$scope, )* } }
            /// What is seen for it.
            #[must_use]
            pub const fn evidence(self) -> Evidence { match self { $( Figure::$name => Evidence::$evidence, )* } }
            /// The name of its column, and the title in text.
            #[must_use]
            pub const fn column(self) -> (&'static str, &'static str) {
                match self { $( Figure::$name => ($id, $title), )* }
            }
            /// Its name as a metric, with its labels, before `pagecache_` is put in front and `_total` behind; pages are bytes
            /// there. `None` where others sum to it over their labels.
            #[must_use]
            pub const fn metric(self) -> Option<&'static str> {
                match self { $( Figure::$name if $metric.is_empty() => None, Figure::$name => Some($metric), )* }
            }
            /// One line that says what is counted.
            #[must_use]
            pub const fn about(self) -> &'static str { match self { $( Figure::$name => $text, )* } }
        }
    };
}

figures! {
    Accesses = "read"."accesses", Pages, sum [ReadHits, ReadAheadHits, ReadMisses], of Row, from Reads,
        column "accesses" "ACCESSES", metric "",
        "pages covered by the byte ranges that read calls delivered";
    Hits = "read"."hits", Pages, sum [ReadHits], of Row, from Reads,
        column "hits" "HITS", metric "read_bytes{outcome=\"hit\"}",
        "accesses whose page was cached and had been used before";
    ReadAheadHits = "read"."readahead_hits", Pages, sum [ReadAheadHits], of Row, from Reads,
        column "readahead_hits" "RAHITS", metric "read_bytes{outcome=\"readahead_hit\"}",
        "first use of a page that only read-ahead had brought in";
    Misses = "read"."misses", Pages, sum [ReadMisses], of Row, from Reads,
        column "misses" "MISSES", metric "read_bytes{outcome=\"miss\"}",
        "accesses whose page was not cached when the call began";
    ReadBytes = "read"."bytes", Bytes, sum [ReadBytes], of Row, from Reads,
        column "read_bytes" "READ_MB", metric "read_delivered_bytes",
        "bytes delivered by reads that went through the page cache";
    StallNs = "read"."stall_ns", Nanoseconds, sum [StallNs], of Row, from TimedReads,
        column "stall_s" "STALL_S", metric "read_stall_seconds",
        "time read calls that missed spent in the call";
    Inflight = "read"."inflight", Pages, sum [Inflight], of Row, from Flights,
        column "inflight" "INFLIGHT", metric "read_inflight_bytes",
        "of HITS and RAHITS, pages still being read from the device when they were reached";
    ReadCalls = "read"."calls", Calls, sum [ReadCalls], of Row, from Reads,
        column "read_calls" "CALLS", metric "read_calls",
        "read calls that delivered bytes from the page cache; io_uring and splice by the piece";
    ReadMissedCalls = "read"."missed_calls", Calls, sum [ReadMissedCalls], of Row, from Reads,
        column "missed_calls" "CALLMISS", metric "read_missed_calls",
        "of these, calls with a page that was not cached when they began";
    ReadAheadPages = "readahead"."pages", Pages, sum [Prefetched], of Row, from Fills,
        column "readahead_pages" "RAPAGES", metric "readahead_bytes",
        "pages added to the cache ahead of the request that caused it";
    ReadAheadWasted = "readahead"."wasted", Pages, sum [PrefetchWasted], of Cache, from Waste,
        column "readahead_wasted" "RAWASTE", metric "readahead_wasted_bytes",
        "prefetched pages evicted or invalidated without ever being used";
    Fills = "readahead"."fills", Pages, sum [MissFills, Prefetched], of Row, from Fills,
        column "fills" "FILLS", metric "fill_bytes",
        "pages that reading added to the cache: those missed and those prefetched";
    Windows = "readahead"."windows", Events, sum [Windows], of Row, from Windows,
        column "windows" "RAWINS", metric "readahead_windows",
        "read-ahead windows issued";
    WindowsCut = "readahead"."windows_cut", Events, sum [WindowsCut], of Row, from Windows,
        column "windows_cut" "RACUT", metric "readahead_windows_cut",
        "of these, windows with a page that was cached already: split into smaller reads";
    FaultMisses = "fault"."misses", Pages, sum [FaultMisses], of Row, from Faults,
        column "fault_misses" "FTMISS", metric "faults{outcome=\"miss\"}",
        "file-mapping faults whose page was not cached (major)";
    FaultHits = "fault"."hits", Pages, sum [FaultHits], of Row, from CachedFaults,
        column "fault_hits" "FTHITS", metric "faults{outcome=\"hit\"}",
        "file-mapping faults whose page was cached (minor)";
    FaultAround = "fault"."around", Pages, sum [FaultAround], of Row, from MappedAround,
        column "fault_around" "FTAROUND", metric "fault_around_bytes",
        "pages mapped without a fault of their own";
    WriteAccesses = "write"."accesses", Pages, sum [WriteHits, WriteMisses], of Row, from Writes,
        column "write_accesses" "WRITES", metric "",
        "pages covered by the byte ranges that write calls took";
    WriteHits = "write"."hits", Pages, sum [WriteHits], of Row, from Writes,
        column "write_hits" "WRHITS", metric "write_bytes{outcome=\"hit\"}",
        "write accesses whose page was cached";
    WriteMisses = "write"."misses", Pages, sum [WriteMisses], of Row, from Writes,
        column "write_misses" "WRMISS", metric "write_bytes{outcome=\"miss\"}",
        "write accesses whose page was not cached";
    Dirtied = "write"."dirtied", Pages, sum [Dirtied], of Row, from Dirtied,
        column "dirtied" "DIRTIES", metric "dirtied_bytes",
        "pages of files that went from clean to dirty";
    BufferDirtied = "write"."buffer_dirtied", Events, sum [BufferDirtied], of Row, from Buffers,
        column "buffer_dirtied" "BUFDIRT", metric "buffers_dirtied",
        "mark_buffer_dirty events (metadata and ext2/3/4 buffers)";
    DirectReadBytes = "direct"."read_bytes", Bytes, sum [DirectReadBytes], of Row, from Direct,
        column "direct_read_bytes" "DREAD_MB", metric "direct_bytes{direction=\"read\"}",
        "bytes read with O_DIRECT that really bypassed the cache";
    DirectWriteBytes = "direct"."write_bytes", Bytes, sum [DirectWriteBytes], of Row, from Direct,
        column "direct_write_bytes" "DWRIT_MB", metric "direct_bytes{direction=\"write\"}",
        "bytes written with O_DIRECT that really bypassed the cache";
    DirectFellBack = "direct"."fell_back_bytes", Bytes, sum [DirectFellBack], of Row, from FellBack,
        column "direct_fell_back_bytes" "DFELL_MB", metric "direct_fell_back_bytes",
        "bytes requested with O_DIRECT that went through the cache after all";
    MetaAccesses = "meta"."accesses", Pages, sum [MetaHits, MetaAheadHits, MetaMisses], of Thread, from Metadata,
        column "meta_accesses" "METAACC", metric "",
        "accesses through a block device's own mapping";
    MetaHits = "meta"."hits", Pages, sum [MetaHits], of Thread, from Metadata,
        column "meta_hits" "METAHITS", metric "metadata_bytes{outcome=\"hit\"}",
        "metadata accesses that were cached";
    MetaAheadHits = "meta"."readahead_hits", Pages, sum [MetaAheadHits], of Thread, from Metadata,
        column "meta_readahead_hits" "METARA", metric "metadata_bytes{outcome=\"readahead_hit\"}",
        "metadata accesses that read-ahead had brought in";
    MetaMisses = "meta"."misses", Pages, sum [MetaMisses], of Thread, from Metadata,
        column "meta_misses" "METAMISS", metric "metadata_bytes{outcome=\"miss\"}",
        "metadata accesses that were not cached";
    Evicted = "cache"."evicted", Pages, sum [Evicted], of Cache, from Removals,
        column "evicted" "EVICTED", metric "removed_bytes{cause=\"reclaim\"}",
        "pages removed from the cache by memory reclaim";
    Removed = "cache"."removed", Pages, sum [Removed], of Cache, from Removals,
        column "removed" "REMOVED", metric "removed_bytes{cause=\"other\"}",
        "pages removed by truncate, unlink, invalidation or drop_caches";
    Refaulted = "cache"."refaulted", Pages, sum [Refaulted], of Row, from Refaults,
        column "refaulted" "REFAULTS", metric "refaulted_bytes",
        "pages read back in after eviction";
}

impl Figure {
    /// Whether it is counted file by file.
    #[must_use]
    pub fn by_file(self) -> bool {
        self.counters().iter().all(|c| FILE_COUNTERS.contains(c))
    }

    /// The figures of a JSON group, in order.
    pub fn of_group(group: &str) -> impl Iterator<Item = Figure> {
        Figure::ALL.iter().copied().filter(move |f| f.group() == group)
    }
}

/// The JSON groups in order, and whether rows have them: what is of the cache, and metadata, have columns at most.
pub const GROUPS: &[(&str, bool)] = &[
    ("read", true),
    ("readahead", true),
    ("fault", true),
    ("write", true),
    ("direct", true),
    ("meta", false),
    ("cache", false),
];

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
    pub fn hit_ratio(&self) -> Option<f64> {
        match (self.get(Figure::Hits), self.get(Figure::Accesses)) {
            (Some(hits), Some(accesses)) if accesses > 0 => Some(hits as f64 / accesses as f64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn figures_of_a_group_stand_together_in_the_order_of_the_groups() {
        let mut groups: Vec<_> = Figure::ALL.iter().map(|f| f.group()).collect();
        groups.dedup();
        assert_eq!(groups, GROUPS.iter().map(|(group, _)| *group).collect::<Vec<_>>());
    }

    #[test]
    fn rows_have_the_groups_of_which_they_have_figures() {
        for (group, rows) in GROUPS {
            let any = |scope| Figure::of_group(group).any(|f| f.scope() == scope);
            // What the cache loses goes with what comes back, though that is somebody's.
            assert_eq!(*rows, any(Scope::Row) && *group != "cache", "{group}");
            assert!(!(*rows && any(Scope::Thread)), "{group}");
        }
    }

    #[test]
    fn metrics_are_named_once_and_what_sums_to_another_is_told_apart_by_labels() {
        let all: Vec<_> = Figure::ALL.iter().filter_map(|f| f.metric()).collect();
        let names =
            all.iter().map(|m| m.split_once('{').map_or((*m, None), |(name, label)| (name, Some(label))));
        let names: Vec<_> = names.collect();
        for (i, (name, label)) in names.iter().enumerate() {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(label.is_none_or(|l| l.ends_with("\"}") && l.contains("=\"")), "{name}");
            let again = names.iter().skip(i + 1).filter(|(other, _)| other == name);
            assert!(
                again.clone().all(|(_, other)| label.is_some() && other.is_some() && other != label),
                "{name}"
            );
        }
        // A sum of figures that have metrics has none of its own: who adds the labels up would count it twice.
        for figure in Figure::ALL.iter().filter(|f| f.metric().is_none()) {
            let parts = Figure::ALL.iter().filter(|p| p.metric().is_some() && p.group() == figure.group());
            let parts: Vec<_> = parts.flat_map(|p| p.counters()).collect();
            assert!(figure.counters().iter().all(|c| parts.contains(&c)), "{}", figure.name());
        }
    }

    /// With `UPDATE_SCHEMA` in the environment, what differs is written.
    #[test]
    fn the_guide_lists_them_all() {
        const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/reference.md");
        let mut ought = "# Every figure\n\nMade from the table in `src/figures.rs`. A metric has `pagecache_` before its name and \
            `_total` behind it;\npages are bytes there. Sums over labels have none of their own.\n\n\
            | figure | unit | column | metric | |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
        for figure in Figure::ALL {
            let (_, title) = figure.column();
            let metric = figure.metric().map_or(String::new(), |m| format!("`{m}`"));
            let (name, unit, about) = (figure.name(), figure.unit().name(), figure.about());
            ought += &format!("| `{name}` | {unit} | `{title}` | {metric} | {about} |\n");
        }
        let is = std::fs::read_to_string(PATH).unwrap_or_default();
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(PATH, &ought).unwrap();
        }
        assert!(is == ought, "docs/guide/reference.md is old: UPDATE_SCHEMA=1 cargo test --lib figures");
    }
}
