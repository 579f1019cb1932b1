//! Raw samples: counters that only rise, as the kernel programs keep them, and the machine's memory state.

mod folded;
mod followed;
mod gathered;
mod known;
mod line;
#[cfg(test)]
pub(crate) mod machine;
mod moment;
mod parts;
mod sparse;
pub(crate) mod written;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use folded::Folded;
pub use folded::FoldedRows;
pub use followed::Follow;
pub use followed::Followed;
pub use followed::Gone;
pub use followed::Threads;
pub use followed::Unended;
pub use followed::Waiting;
pub use gathered::Gathered;
pub use known::Known;
pub use line::Line;
pub use moment::Moment;
pub use parts::Parts;
pub use sparse::Sparse;

use serde::Deserialize;
use serde::Serialize;

use crate::files::File;
use crate::rising;
use crate::text::foreign::Foreign;
use crate::wire::COUNTERS;
pub use crate::wire::Counter;
use crate::wire::LATENCY_BUCKETS;
use crate::wire::WINDOW_BUCKETS;

/// One set of counters, monotone since attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters(pub [u64; COUNTERS]);

impl Default for Counters {
    fn default() -> Self {
        Self([0; COUNTERS])
    }
}

impl Counters {
    /// The value of one counter.
    #[must_use]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Adds another set, counter by counter.
    pub fn add(&mut self, other: &Self) {
        rising::add(&mut self.0, &other.0);
    }

    /// Adds what is not zero of another set.
    pub fn add_sparse(&mut self, other: &Sparse) {
        for (counter, value) in other.iter() {
            self.0[counter] = self.0[counter].saturating_add(value);
        }
    }

    /// What was counted since `earlier`. Counters only rise, so this never goes below zero; a set that did
    /// (a reused key) counts from zero again.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = *self;
        rising::since(&mut out.0, &earlier.0);
        out
    }

    /// True if nothing was counted.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|v| *v == 0)
    }
}

/// A command name of at most 15 bytes, as the kernel keeps it. Nothing but zeros stands behind its end, so that two
/// equal names are equal here, whatever memory they come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The name that begins these bytes and ends at the first zero among them, or where the kernel would cut it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut out = [0; 16];
        let name = bytes.iter().take_while(|b| **b != 0);
        for (to, from) in out.iter_mut().take(15).zip(name) {
            *to = *from;
        }
        Self(out)
    }

    /// All 16 bytes: the name, and zeros behind it.
    #[must_use]
    pub const fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The bytes of the name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }

    /// The name, for those who show it.
    #[must_use]
    pub fn foreign(&self) -> Foreign {
        self.as_bytes().into()
    }

    /// The name; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl From<&str> for Comm {
    fn from(name: &str) -> Self {
        Self::from_bytes(name.as_bytes())
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.name(), f)
    }
}

/// Where a process comes from, as the kernel said when its row was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// When the process began, nanoseconds on the kernel's clock; with its id it is one process only.
    pub begun: u64,
    /// Thread-group id of its parent then, in the initial PID namespace.
    pub parent: u32,
    /// When that began.
    pub parent_begun: u64,
    /// The name of the parent then.
    pub parent_name: Comm,
}

/// What one thread did under one name since the sample before. A thread that changes its name gets another row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSample {
    /// Thread-group id in the initial PID namespace.
    pub tgid: u32,
    /// Thread id in the initial PID namespace.
    pub tid: u32,
    /// Real user id in the initial user namespace, at the row's first event.
    pub uid: u32,
    /// Inode number of the cgroup's directory, at the row's first event: the cgroup of the memory controller in
    /// version 1, the only one in version 2.
    pub cgroup: u64,
    /// When the row was made, nanoseconds since boot.
    pub born: u64,
    /// Name of the thread.
    pub comm: Comm,
    /// Name of the process (of the thread group's leader).
    pub process: Comm,
    /// Where its process comes from; `None` where that was not asked, as in what was recorded.
    pub family: Option<Family>,
    /// What was counted since the sample before.
    pub counters: Sparse,
    /// Its read calls and read-ahead windows since the sample before; `None` if nobody requested them, or there were
    /// none.
    pub latency: Option<Box<Histograms>>,
}

impl RowSample {
    /// Adds what the same thread did later.
    pub fn add(&mut self, new: &Self) {
        self.born = new.born;
        self.family = new.family.or(self.family);
        self.counters.add(&new.counters);
        if let Some(new) = &new.latency {
            self.latency.get_or_insert_default().add(new);
        }
    }
}

/// What one process did to one file since the sample before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSample {
    /// Thread-group id in the initial PID namespace.
    pub tgid: u32,
    /// User id, as in [`RowSample`].
    pub uid: u32,
    /// Cgroup, as in [`RowSample`].
    pub cgroup: u64,
    /// When the row was made, nanoseconds since boot.
    pub born: u64,
    /// Name of the process.
    pub process: Comm,
    /// The file.
    pub file: Arc<File>,
    /// No directory had the file when it was last used.
    pub deleted: bool,
    /// What was counted since the sample before; only what [`crate::wire::FILE_COUNTERS`] lists.
    pub counters: Sparse,
}

impl FileSample {
    /// Adds what the same process did to it later.
    pub fn add(&mut self, new: &Self) {
        self.born = new.born;
        self.deleted = new.deleted;
        self.counters.add(&new.counters);
    }
}

/// The state of the cache as the kernel reports it in `/proc/meminfo`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// `Cached`.
    pub cached_bytes: u64,
    /// `Buffers`.
    pub buffers_bytes: u64,
    /// `Dirty`.
    pub dirty_bytes: u64,
}

/// Events that could not be accounted since attach, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Reason, by its id in [`crate::loss::REASONS`], and number of events. A sample that another version has written may
    /// have reasons that this one does not know.
    pub by_reason: Vec<(Cow<'static, str>, u64)>,
}

impl Lost {
    /// All losses together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Adds others to them.
    pub fn add(&mut self, other: &Self) {
        for (why, n) in other.by_reason.iter().filter(|(_, n)| *n > 0) {
            match self.by_reason.iter_mut().find(|(known, _)| known == why) {
                Some((_, sum)) => *sum = sum.saturating_add(*n),
                None => self.by_reason.push((why.clone(), *n)),
            }
        }
    }

    /// Losses since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before: HashMap<_, _> = earlier.by_reason.iter().map(|(why, n)| (why, *n)).collect();
        Self {
            by_reason: self
                .by_reason
                .iter()
                .map(|(why, n)| (why.clone(), n - before.get(why).copied().unwrap_or(0).min(*n)))
                .collect(),
        }
    }
}

/// Histograms: of the whole system, monotone since attach, or of a part of it since the sample before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histograms {
    /// Read calls that did not miss, by latency.
    pub hit: [u64; LATENCY_BUCKETS],
    /// Read calls that missed, by latency.
    pub miss: [u64; LATENCY_BUCKETS],
    /// Read-ahead windows, by size in pages.
    pub window: [u64; WINDOW_BUCKETS],
}

impl Histograms {
    /// All buckets, one after the other.
    pub fn buckets(&mut self) -> impl Iterator<Item = &mut u64> {
        self.hit.iter_mut().chain(self.miss.iter_mut()).chain(self.window.iter_mut())
    }

    /// Adds another set, bucket by bucket.
    pub fn add(&mut self, other: &Self) {
        for (sum, n) in self.buckets().zip(other.clone().buckets()) {
            *sum = sum.saturating_add(*n);
        }
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (mut out, mut then) = (self.clone(), earlier.clone());
        for (now, then) in out.buckets().zip(then.buckets()) {
            *now = now.saturating_sub(*then);
        }
        out
    }
}

/// Everything that a tick saw. It can be written down and read back (serde), and means the same then.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When it was read, for rates.
    pub at: Moment,
    /// When it was read, for people.
    pub time: jiff::Timestamp,
    /// Which figures are known in it.
    pub known: Arc<Known>,
    /// Counters of the whole system since attach; they do not depend on the table having room.
    pub total: Counters,
    /// The same, of the moment at which the files were read: the line above their rows. `None` where they are not
    /// counted.
    pub by_file: Option<Counters>,
    /// Threads that did something since the sample before.
    pub rows: Vec<RowSample>,
    /// Files that a process used since the sample before; empty if nobody requested them.
    pub files: Vec<FileSample>,
    /// Of a sum of samples: what rows counted that are not kept by themselves.
    pub folded: FoldedRows,
    /// Latency of read calls since attach; `None` if nobody requested it.
    pub latency: Option<Box<Histograms>>,
    /// What could not be accounted.
    pub lost: Lost,
    /// `/proc/meminfo`.
    pub memory: Memory,
    /// What the classic engine counted, where it runs.
    pub classic: Option<crate::classic::Sample>,
    /// Who took pages out of the cache, since attach, where rows are made of that.
    pub evictors: Option<Arc<crate::blame::Raw>>,
    /// What one command did, where one is followed.
    pub followed: Option<Box<Followed>>,
}

impl Sample {
    /// The sample without its rows, which may be many, and without what one command did.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self {
            at: self.at,
            time: self.time,
            known: Arc::clone(&self.known),
            total: self.total,
            by_file: self.by_file,
            rows: Vec::new(),
            files: Vec::new(),
            folded: FoldedRows::default(),
            latency: self.latency.clone(),
            lost: self.lost.clone(),
            memory: self.memory,
            classic: self.classic.clone(),
            evictors: self.evictors.clone(),
            followed: None,
        }
    }
}

/// Where samples come from: the kernel, or a test.
pub trait Source {
    /// Reads everything once.
    ///
    /// # Errors
    /// When the kernel refuses to hand out a table.
    fn sample(&mut self) -> anyhow::Result<Sample>;

    /// The plan in force: which figures are exact, bounded or unknown.
    fn plan(&self) -> &crate::plan::Plan;

    /// How often it is to be relieved while an interval lasts; `None`: there is no need to.
    fn relief(&self) -> Option<Duration> {
        None
    }

    /// Makes room where what happens waits to be read. What was read is part of the next sample.
    ///
    /// # Errors
    /// When the kernel refuses to hand out a table.
    fn relieve(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_name_is_not_part_of_it() {
        let names: [&[u8]; 3] = [b"dd\0cachestat\0\0\0\0", b"dd\0\0\0", b"dd\0-the-longest-"];
        for bytes in names {
            let comm = Comm::from_bytes(bytes);
            assert_eq!(comm, Comm::from("dd"));
            assert_eq!(comm.cmp(&Comm::from("dd")), std::cmp::Ordering::Equal);
            assert_eq!(std::collections::HashSet::from([comm, Comm::from("dd")]).len(), 1);
            assert_eq!(comm.name(), "dd");
        }
    }

    #[test]
    fn a_name_is_cut_where_the_kernel_cuts_it() {
        assert_eq!(Comm::from_bytes(b"sixteen-letters-").name(), "sixteen-letters");
        assert_eq!(Comm::from("a-name-that-is-far-too-long"), Comm::from("a-name-that-is-"));
        assert_eq!(Comm::from_bytes(b"").name(), "");
        assert_eq!(Comm::from_bytes(b"\0left over"), Comm::default());
    }
}
