//! Who pushed whose pages out of the cache, and which of them came back: `cachestat --blame`.
//!
//! [`start`] is the command. The kernel programs (`bpf/evictor.h`, `bpf/blame.h`) count pages by [`Evictor`]; [`Bill`]
//! is what was counted in a stretch of time, `view.rs` shows it. Pure but for `start`.

mod bill;
mod details;
mod room;
pub mod start;
mod view;

pub use bill::Bill;
pub use details::Came;
pub use details::Details;
pub use details::FileShare;
pub use details::Reader;
pub use room::Grown;
pub use room::Growth;
pub use room::Room;
pub use room::Share;
pub use start::Options;

macro_rules! hows {
    ($($name:ident = $id:literal, $text:literal;)*) => {
        /// How pages leave the cache; the same, in order, as `enum blame_how` in `bpf/evictor.h`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum How { $( #[doc = $text] $name, )* }

        impl How {
            /// All of them.
            pub const ALL: &[How] = &[ $( How::$name, )* ];
            /// The name in JSON and in the table.
            #[must_use]
            pub const fn name(self) -> &'static str { match self { $( How::$name => $id, )* } }
            /// What it means.
            #[must_use]
            pub const fn text(self) -> &'static str { match self { $( How::$name => $text, )* } }
        }
    };
}

hows! {
    Kswapd = "kswapd", "the kernel's own thread, since memory of the machine was short";
    Direct = "direct", "a thread that needed memory itself, since memory of the machine was short";
    Limit = "limit", "reclaim for the limit of a cgroup (memory.max, memory.high)";
    Proactive = "proactive", "memory.reclaim: somebody asked for it";
    Pageout = "pageout", "MADV_PAGEOUT";
    Damon = "damon", "DAMON";
    Reclaim = "reclaim", "reclaim of another kind, as for a place in memory";
    Dontneed = "dontneed", "POSIX_FADV_DONTNEED";
    Dropped = "drop_caches", "/proc/sys/vm/drop_caches";
    Deleted = "deleted", "the file has no name any more";
    Truncated = "truncated", "the file was truncated, or a hole was made";
    Invalidated = "invalidated", "otherwise: direct I/O, unmounting, network file systems, the kernel's threads";
    Advised = "pageout", "MADV_PAGEOUT, where the kernel does not mark it as reclaim";
}

impl How {
    /// Whether reclaim took the pages.
    #[must_use]
    pub fn reclaims(self) -> bool {
        self < How::Dontneed
    }
}

/// Who took pages out, and whose. Cgroups by their numbers, which the kernel never gives twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// The cgroup whose limit, or whose `memory.reclaim`; 0: none.
    pub limit: u64,
    /// The cgroup of the thread; 0: kswapd.
    pub by: u64,
    /// The cgroup that the pages were charged to; 0: none.
    pub owner: u64,
    /// The name of the process.
    pub process: Vec<u8>,
    /// The run of a command that lasted; 0: none is watched.
    pub run: u32,
    /// Whether a process of that run did it, or one that was asked for.
    pub own: bool,
}

/// Who took pages out, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Evictor {
    /// How.
    pub how: How,
    /// Who and whose; `None`: there was no room for another row.
    pub who: Option<Row>,
}

/// Pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// That left the cache.
    pub out: u64,
    /// Of these, that were added to it again.
    pub back: u64,
    /// For which the kernel said, when they were added again, that it had evicted them.
    pub refaulted: u64,
    /// Of those that came back, the ones that a process of the run brought in, or one that was asked for.
    pub again: u64,
    /// Times that a thread waited for one of them while it was being read.
    pub waits: u64,
    /// How long that was, in nanoseconds.
    pub waited_ns: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.out += other.out;
        self.back += other.back;
        self.refaulted += other.refaulted;
        self.again += other.again;
        self.waits += other.waits;
        self.waited_ns += other.waited_ns;
    }
}

/// What the kernel programs counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// By evictor.
    pub rows: Vec<(Evictor, Counts)>,
    /// Pages that left and were forgotten, since there was no room, before they could come back.
    pub forgotten: u64,
    /// Pages that the kernel read back in, of which is not known who had taken them out.
    pub strangers: u64,
    /// Of which files, and who brought them in again; empty where that was not asked for.
    pub details: Details,
    /// Memory that cgroups took; empty where that was not asked for.
    pub grown: Grown,
}
