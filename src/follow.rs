//! What one command and its descendants did, as the kernel programs keep it apart.

use std::collections::BTreeMap;

use crate::sample::Comm;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Histograms;

/// What belongs to one run of a command: the processes that it made, and those that they made.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    /// Number of the run; 0: none is followed.
    pub run: u32,
    /// What was counted since the run began, threads without room in the table included.
    pub counters: Counters,
    /// Latency of its read calls and sizes of its read-ahead windows since then; zero unless asked for.
    pub histograms: Histograms,
    /// What its processes did to files since the reading before.
    pub files: Vec<FileSample>,
    /// Its processes that were seen doing something, with the newest name of each.
    pub processes: BTreeMap<u32, Comm>,
}

impl Followed {
    /// Nothing yet of this run.
    #[must_use]
    pub fn new(run: u32) -> Self {
        Self { run, ..Self::default() }
    }
}
