//! Raw samples: counters that only rise, as the kernel programs keep them, and the machine's memory state.

use std::collections::HashMap;
use std::time::Instant;

use crate::wire::COUNTERS;
pub use crate::wire::Counter;

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
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b;
        }
    }

    /// What was counted since `earlier`. Counters only rise, so this never goes below zero; a set that did
    /// (a reused key) counts from zero again.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = *self;
        if self.0.iter().zip(earlier.0).all(|(now, then)| *now >= then) {
            for (a, b) in out.0.iter_mut().zip(earlier.0) {
                *a -= b;
            }
        }
        out
    }

    /// True if nothing was counted.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|v| *v == 0)
    }
}

/// A process (thread group) as the kernel programs saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSample {
    /// Thread-group id in the initial PID namespace.
    pub tgid: u32,
    /// Real user id in the initial user namespace.
    pub uid: u32,
    /// Command name (`/proc/PID/comm`) at its first event, its last exec or its exit, at most 15 bytes.
    pub comm: String,
    /// Its counters since attach.
    pub counters: Counters,
}

/// The state of the cache as the kernel reports it in `/proc/meminfo`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// `Cached`.
    pub cached_bytes: u64,
    /// `Buffers`.
    pub buffers_bytes: u64,
    /// `Dirty`.
    pub dirty_bytes: u64,
}

/// Events that could not be accounted since attach, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost {
    /// Reason (a short stable id such as `recursion` or `processes_full`) and number of events.
    pub by_reason: Vec<(&'static str, u64)>,
}

impl Lost {
    /// All losses together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.iter().map(|(_, n)| n).sum()
    }

    /// Losses since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before: HashMap<_, _> = earlier.by_reason.iter().copied().collect();
        Self {
            by_reason: self
                .by_reason
                .iter()
                .map(|(why, n)| (*why, n - before.get(why).copied().unwrap_or(0).min(*n)))
                .collect(),
        }
    }
}

/// Everything read at one tick.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it was read, for rates.
    pub at: Instant,
    /// When it was read, for people.
    pub time: jiff::Timestamp,
    /// Counters of the whole system; they do not depend on the process table having room.
    pub total: Counters,
    /// Counters by process, those that are alive or died since the last sample.
    pub processes: HashMap<u32, ProcessSample>,
    /// What could not be accounted.
    pub lost: Lost,
    /// `/proc/meminfo`.
    pub memory: Memory,
    /// What the classic engine counted, where it runs.
    pub classic: Option<crate::classic::Sample>,
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
}
