//! What is known of a run of the command: the figures of a report, as they are shown, saved and compared.

mod files;
mod json;
mod waits;
mod warmth;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use super::machine::Machine;
use super::machine::ReadLimit;
use super::units;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::sample::Histograms;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;

pub use files::FileRow;
pub use files::Pattern;
pub use files::Residency;
#[cfg(test)]
pub(super) use json::SIZES;
pub use waits::Waits;

/// Names that the dentry cache did not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lookups {
    /// Look-ups for which the file system was asked.
    pub dcache_misses: Option<u64>,
    /// Work on them, nanoseconds, without waiting.
    pub work_ns: Option<u64>,
}

/// What the kernel's own accounts say of the command's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Processor time outside the kernel, seconds.
    pub user_s: Option<f64>,
    /// Processor time in the kernel, seconds.
    pub system_s: Option<f64>,
    /// Bytes that its processes fetched from devices or servers (`rusage.ru_inblock`, `/proc/PID/io`).
    pub device_read_bytes: Option<u64>,
    /// Bytes that its read calls delivered, from files of any kind, pipes, sockets and terminals (`rchar`).
    pub called_read_bytes: Option<u64>,
    /// Bytes that it made dirty, which the kernel sends to devices now or later (`ru_oublock`): whole folios, whatever part of
    /// them was written, each time that they became dirty.
    pub device_write_bytes: Option<u64>,
    /// Major faults as `perf stat` and `time` count them: of mappings only.
    pub major_faults: Option<u64>,
    /// Minor faults, anonymous memory among them.
    pub minor_faults: Option<u64>,
}

/// Another process that brought pages of the command's files into the cache while we watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmer {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: Foreign,
    /// A file of the command's that it read.
    pub path: Option<Foreign>,
    /// Pages that it brought in.
    pub fills: u64,
    /// When it was seen last, universal time.
    pub time: String,
}

/// Who brought in the pages that a run found: parts of `warm_pages`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Runs of the same session by number, and pages.
    pub runs: Vec<(u32, u64)>,
    /// Other processes, before the run used the file.
    pub others: u64,
    /// Others while it did: they may have come first or not.
    pub meanwhile: u64,
    /// Nobody since the watch began; 0 where not everybody is known.
    pub before: u64,
    /// Files that found no room in the list of what the run did.
    pub unlisted: bool,
}

/// The most that was in the cache before a run, where `warm_pages` without `since_pages` is the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bound {
    /// Pages that were there, at most.
    pub warm: u64,
    /// Other pages that it used through the cache, at least.
    pub other: u64,
}

/// What the whole machine did meanwhile: nobody's in particular.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Elsewhere {
    /// Pages evicted.
    pub evicted: Option<u64>,
    /// Pages removed otherwise.
    pub removed: Option<u64>,
    /// Prefetched pages that left the cache unused.
    pub readahead_wasted: Option<u64>,
    /// Pages read back in after eviction, by anybody.
    pub refaulted: Option<u64>,
    /// Pages read by others that were not in the cache.
    pub misses_of_others: Option<u64>,
}

/// A piece of the time line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tick {
    /// Seconds since the run began, at its end.
    pub at_s: f64,
    /// Pages, as `read.hits`.
    pub hits: u64,
    /// Pages, as `read.readahead_hits`.
    pub readahead_hits: u64,
    /// Pages, as `read.misses`.
    pub misses: u64,
    /// Pages written.
    pub written: u64,
    /// Bytes of direct I/O.
    pub direct_bytes: u64,
    /// Waiting for data (reads, faults, `execve`), ns.
    pub data_ns: u64,
    /// Waiting for metadata (`open`, look-ups, directories), ns.
    pub metadata_ns: u64,
    /// Waiting for writes and `fsync`, ns.
    pub write_ns: u64,
}

/// One run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// 1 for the first.
    pub number: u32,
    /// Whether what is said of it counts pages, or what they hold.
    #[serde(skip)]
    pub unit: Unit,
    /// Whether it was run to warm up, and counts for nothing.
    #[serde(skip)]
    pub warmup: bool,
    /// The letter of its command, where several are compared.
    pub label: Option<String>,
    /// What was run, word by word, as reports keep it: only to know whether another run was of the same command. `None`: not told.
    #[serde(skip)]
    pub line: Option<Arc<str>>,
    /// Whether it belongs to no mean: it ended otherwise than the first run, or was interrupted.
    pub left_out: bool,
    /// When it began, universal time.
    pub time: String,
    /// Which caches were emptied just before.
    pub cold: Option<String>,
    /// What was in the page cache right after that: what is in use cannot be emptied.
    pub cold_left: Option<super::cold::Left>,
    /// As a shell tells it: 128 + signal; `None` where a process was watched that ran already.
    pub exit_status: Option<i32>,
    /// The signal that the command died of.
    #[serde(skip)]
    pub signal: Option<i32>,
    /// Whether somebody ended it before it was over.
    #[serde(skip)]
    pub interrupted: bool,
    /// Whether it is compared whatever it ended with: `--ignore-failure`.
    #[serde(skip)]
    pub any_end: bool,
    /// From the start to the end, seconds.
    pub wall_s: f64,
    /// The kernel's accounts.
    #[serde(flatten, skip_deserializing)]
    pub usage: Usage,
    /// Where it waited.
    pub waits: Waits,
    /// Dentry and inode look-ups.
    pub lookups: Lookups,
    /// Read calls by latency; `None` where it is not known.
    pub latency: Option<Latency>,
    /// Read-ahead windows by size in pages, 2^i and more.
    pub window_pages: Option<Vec<u64>>,
    /// Files, the busiest first.
    pub files: Vec<FileRow>,
    /// The counts of all files, where they are asked for (`--try`).
    #[serde(skip)]
    pub every: Vec<FileRow>,
    /// How many files there were.
    pub files_seen: u64,
    /// Of these, the ones of which something was brought in; 0 in reports that were saved.
    #[serde(skip)]
    pub files_brought: u64,
    /// Pages that the command used in any way: found, brought in by reads and faults, read past the cache, and those of
    /// which it is not known.
    pub asked_pages: u64,
    /// Of these, the ones that were in the cache when it came to them, and that it had not brought in: at least so many.
    pub warm_pages: u64,
    /// Of these, the ones that others may have brought in since the run began: they were not there before it.
    #[serde(skip)]
    pub since_pages: u64,
    /// Of `warm_pages`, the ones of files that something was read ahead of.
    #[serde(skip)]
    pub warm_ahead_pages: u64,
    /// Other pages that were there before: those that it read of files that are nowhere else than in memory.
    #[serde(skip)]
    pub memory_pages: u64,
    /// At most so many: `None` where that is not known.
    #[serde(skip)]
    pub bound: Option<Bound>,
    /// Whose they were.
    #[serde(skip)]
    pub origin: Origin,
    /// Pages read ahead and not read, of files that the command neither mapped nor wrote to; `None` where its faults are
    /// not known.
    #[serde(skip)]
    pub unused_pages: Option<u64>,
    /// Pages that it brought in more than once, at least; `None`: nothing had been evicted before.
    #[serde(skip)]
    pub twice_pages: Option<u64>,
    /// Who else read these files while we watched, before the command used them.
    pub warmers: Vec<Warmer>,
    /// Whether one thread did it all, so that nothing can have been done at the same time.
    pub one_thread: Option<bool>,
    /// Bytes of read calls that nobody saw, at most, where that is worth a word.
    #[serde(skip)]
    pub unseen_bytes: Option<u64>,
    /// The same in pages, as it is in `asked_pages` and in `bound`; 0 where it is not.
    #[serde(skip)]
    pub unseen_pages: u64,
    /// The state of the cache that it was made in.
    pub certificate: Option<super::certificate::Certificate>,
    /// Whether caches were emptied before each run of the series that was not to be warm.
    #[serde(skip)]
    pub cold_each: bool,
    /// The line that was run before it, without counting.
    #[serde(skip)]
    pub prepare: Option<String>,
    /// Processes that were seen, with their names.
    pub processes: BTreeMap<u32, Foreign>,
    /// Descendants that still ran when the command had ended.
    pub left_behind: Vec<u32>,
    /// Whether some of `usage` is of processes that nobody waited for, and is at least so much.
    #[serde(skip)]
    pub unwaited: bool,
    /// The machine meanwhile.
    pub system: Elsewhere,
    /// What another size of the cache would have brought; `None`: nobody asked (`--what-if`).
    pub what_if: Option<crate::whatif::Prediction>,
    /// Of a process that was watched: that it slept all the time.
    #[serde(skip)]
    pub asleep: Option<super::asleep::Asleep>,
    /// The same: that some of it waited all the time so that no signal ends it.
    #[serde(skip)]
    pub hung: Option<super::asleep::Hung>,
    /// Waits for storage of threads that went on which had not ended by the end.
    #[serde(skip)]
    pub unended: Option<crate::sample::Unended>,
    /// What its processes were seen to have open.
    #[serde(skip)]
    pub ends: super::ends::Ends,
    /// The kernel's accounts of the machine and of its cgroup meanwhile.
    #[serde(skip)]
    pub machine: Machine,
    /// The same, from the end of the run before to its beginning; `None` of the first.
    #[serde(skip)]
    pub machine_before: Option<Machine>,
    /// What its cgroups let it read in a second, where they bound it.
    #[serde(skip)]
    pub read_limits: Vec<ReadLimit>,
    /// Who pushed whose pages out meanwhile, as far as the run has to do with it; `None`: nobody asked.
    #[serde(skip_deserializing)]
    pub blame: Option<super::pushed::Pushed>,
    /// How it went.
    pub timeline: Vec<Tick>,
    /// Events that could not be accounted, by reason; zeros left out.
    pub lost: BTreeMap<String, u64>,
    /// Figures of [`Figure`].
    #[serde(skip)]
    pub figures: Figures,
    /// Those that are at least so much: not all of what they count is seen here.
    #[serde(skip)]
    pub at_least: Vec<Figure>,
    /// Whether it was read from a saved report, which does not say all by which waits in page faults are told apart.
    #[serde(skip)]
    pub saved: bool,
}

/// Read calls by latency: bucket 0 is below 256 ns, bucket i from 2^(7+i) ns on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Calls that did not miss.
    pub hit: Vec<u64>,
    /// Calls that missed.
    pub miss: Vec<u64>,
}

impl From<&Histograms> for Latency {
    fn from(h: &Histograms) -> Self {
        Self { hit: h.hit.to_vec(), miss: h.miss.to_vec() }
    }
}

impl Run {
    /// Pages in a sentence about the run, in its unit.
    #[must_use]
    pub fn volume(&self, pages: u64) -> String {
        units::volume(pages, self.unit)
    }

    /// The same of what was counted in bytes.
    #[must_use]
    pub fn volume_of_bytes(&self, bytes: u64) -> String {
        units::volume_of_bytes(bytes, self.unit)
    }

    /// Whether it ended as another did: a run that failed or was cut short did less, however fast it was. Of a process that was
    /// watched no status is known, which is taken for a good end.
    #[must_use]
    pub fn ended_as(&self, other: &Self) -> bool {
        let status = |run: &Self| run.exit_status.unwrap_or(0);
        let cut = self.interrupted || other.interrupted;
        !cut && (self.any_end || other.any_end || status(self) == status(other))
    }

    /// Whether both were of the same command, for all that is known.
    #[must_use]
    pub fn is_same_command(&self, other: &Self) -> bool {
        self.line.as_ref().zip(other.line.as_ref()).is_none_or(|(a, b)| a == b)
    }

    /// How it ended, in words that go on behind its name.
    #[must_use]
    pub fn ended(&self) -> String {
        match self.exit_status {
            _ if self.interrupted => "was interrupted".into(),
            Some(status) => format!("ended with exit status {status}"),
            None => "ended otherwise".into(),
        }
    }

    /// A figure of the contract.
    #[must_use]
    pub const fn get(&self, figure: Figure) -> Option<u64> {
        self.figures.get(figure)
    }

    /// Pages that it brought in by reading, mapping or writing.
    #[must_use]
    pub fn brought_in(&self) -> Option<u64> {
        Some(self.get(Figure::Fills)? + self.get(Figure::FaultMisses).unwrap_or(0))
    }
}
