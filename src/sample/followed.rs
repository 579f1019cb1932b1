//! What one command and its descendants did, as the kernel programs keep it apart.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use super::Comm;
use super::Counter;
use super::Counters;
use super::FileSample;
use super::Histograms;
use super::Moment;
use super::Parts;
use super::Source;
use crate::blame::Raw;
use crate::readahead::Request;

/// What belongs to one run of a command: the processes that it made, and those that they made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Followed {
    /// Number of the run; 0: none is followed.
    pub run: u32,
    /// What was counted since the run began, threads without room in the table included.
    pub counters: Counters,
    /// Latency of its read calls and sizes of its read-ahead windows since then; zero unless requested.
    pub histograms: Histograms,
    /// What its processes did to files since the reading before.
    pub files: Vec<FileSample>,
    /// Which parts of these were read by then, one for each of `files`; empty where nobody looked.
    pub parts: Vec<Parts>,
    /// Its processes that did something since the reading before, with the newest name of each.
    pub processes: BTreeMap<u32, Comm>,
    /// Its threads that were seen.
    pub threads: Threads,
    /// Waiting that is not in `counters`, since it had not ended; `None` where nobody looked.
    pub waiting: Option<Waiting>,
}

/// What threads had waited up to a moment, beyond what their counters said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The moment, a little before that of the sample.
    pub at: Moment,
    /// Nanoseconds, by the counter that they will be added to.
    pub so_far: Counters,
    /// Those of them that lasted, for storage; `None`: there were none. A recording does not have it.
    pub storage: Option<Unended>,
}

/// Waits that had not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unended {
    /// How many threads waited.
    pub threads: u64,
    /// In what the one that had waited longest did.
    pub why: Counter,
    /// For how long, nanoseconds.
    pub ns: u64,
}

impl Unended {
    /// One more.
    pub const fn note(&mut self, why: Counter, ns: u64) {
        self.threads += 1;
        if ns > self.ns {
            (self.why, self.ns) = (why, ns);
        }
    }
}

/// How many threads there were, as far as it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Threads {
    /// None was seen.
    #[default]
    None,
    /// One, by its number.
    One(u32),
    /// Others as well.
    Several,
}

impl Threads {
    /// One was seen.
    pub fn see(&mut self, tid: u32) {
        *self = match *self {
            Threads::None => Threads::One(tid),
            Threads::One(known) if known == tid => Threads::One(tid),
            _ => Threads::Several,
        };
    }
}

impl Followed {
    /// Nothing yet of this run.
    #[must_use]
    pub fn new(run: u32) -> Self {
        Self { run, ..Self::default() }
    }
}

/// What processes that are gone used, by the kernel's own accounts: whoever waited for them. Only ever up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gone {
    /// Processor time outside the kernel, as the ticks of its clock found it: good for the ratio only.
    pub user_ns: u64,
    /// Processor time in the kernel, likewise.
    pub system_ns: u64,
    /// Processor time, exact.
    pub ran_ns: u64,
    /// Faults that needed no device.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Bytes that their threads fetched from devices and servers.
    pub read_bytes: u64,
    /// Bytes that their threads sent there, or will have sent.
    pub write_bytes: u64,
}

/// A source that can keep apart what one command does, with its descendants.
pub trait Follow: Source {
    /// From here on what processes of this run do is kept apart. Nobody belongs to it yet.
    fn follow(&mut self, run: u32);

    /// While this is not 0, a process that this process makes belongs to that run.
    fn spawning(&mut self, run: u32);

    /// Takes a process into the run: itself and what it makes from here on.
    ///
    /// # Errors
    /// When the table is full.
    fn enter(&mut self, tgid: u32, run: u32) -> anyhow::Result<()>;

    /// Follows a process no longer, and does not keep its accounts when it goes. False if it has gone.
    ///
    /// # Errors
    /// When the table refuses.
    fn leave(&self, tgid: u32) -> anyhow::Result<bool>;

    /// The run of a process that has not been waited for; `None`: it is not followed.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn run_of(&self, tgid: u32) -> anyhow::Result<Option<u32>>;

    /// The processes of a run that have not been waited for.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn members(&self, run: u32) -> anyhow::Result<Vec<u32>>;

    /// What processes that are gone used, of all that were ever followed.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn gone(&self) -> anyhow::Result<Gone>;

    /// Who took pages out of the cache since attach; nothing where that is not counted. Files have no names there.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn blame(&mut self) -> anyhow::Result<Raw>;

    /// The same with the names of the files that are in it.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn named(&mut self, raw: Raw) -> anyhow::Result<Raw> {
        Ok(raw)
    }

    /// The read requests that were made since the last time, in order, and how many were made that are not among them, since
    /// the beginning; nothing unless that was wanted ([`crate::plan::Wants::tried`]).
    ///
    /// # Errors
    /// When they cannot be read.
    fn requests(&mut self) -> anyhow::Result<(Vec<Request>, u64)> {
        Ok((Vec::new(), 0))
    }

    /// From now on touches of this part of all pages are sent, where somebody asked for touches.
    fn choose(&mut self, _part: f64) {}

    /// Touches that there was no room for, and pages that were not looked at, since attach.
    fn touches_lost(&mut self) -> (u64, u64) {
        (0, 0)
    }
}
