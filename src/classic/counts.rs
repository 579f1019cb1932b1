//! What the kernel programs of the classic engine add up.

use std::collections::HashMap;

use serde::Deserialize;
use serde::Serialize;

/// The counters of `bpf/classic.bpf.c`, in the order of `enum classic_counter`; a test compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Pages added to the cache (`filemap_add_folio`, `add_to_page_cache_lru`).
    Added,
    /// Pages marked accessed (`folio_mark_accessed`, `mark_page_accessed`).
    Accessed,
    /// Pages that went from clean to dirty, metadata among them (`folio_account_dirtied`, `account_page_dirtied`).
    Dirtied,
    /// Buffers dirtied, an event count (`mark_buffer_dirty`).
    BufferDirtied,
    /// Events lost to rows (not to totals): no room in the process table.
    LostProcesses,
}

impl Counter {
    /// All counters, in wire order.
    pub const ALL: &[Counter] = &[
        Counter::Added,
        Counter::Accessed,
        Counter::Dirtied,
        Counter::BufferDirtied,
        Counter::LostProcesses,
    ];
    /// Those that are events of the cache, each with a hook of its own.
    pub const EVENTS: [Counter; 4] =
        [Counter::Added, Counter::Accessed, Counter::Dirtied, Counter::BufferDirtied];

    /// Its key in JSON, for those that are events.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Counter::Added => "added",
            Counter::Accessed => "accessed",
            Counter::Dirtied => "dirtied",
            Counter::BufferDirtied => "buffer_dirtied",
            Counter::LostProcesses => "lost_processes",
        }
    }
}

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();

/// One set of counters, monotone since attach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(pub [u64; COUNTERS]);

impl Counts {
    /// The value of one counter.
    #[must_use]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Adds another set, counter by counter.
    pub fn add(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = a.saturating_add(b);
        }
    }

    /// What was counted since `earlier`. A set that is below it belongs to another process of the same id, and
    /// counts from zero.
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
}

/// Which of the four events have a hook on this kernel, in the order of [`Counter::EVENTS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known(pub [bool; 4]);

/// A process (thread group) as the classic programs saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Thread-group id in the initial PID namespace.
    pub tgid: u32,
    /// Real user id in the initial user namespace.
    pub uid: u32,
    /// Command name, at most 15 bytes.
    pub comm: String,
    /// Its counters since attach.
    pub counts: Counts,
}

/// What the classic programs had counted at one tick.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Which counters mean something here.
    pub known: Known,
    /// The whole system; does not depend on the process table having room.
    pub total: Counts,
    /// By process, those that are alive or died lately.
    pub processes: HashMap<u32, ProcessSample>,
}
