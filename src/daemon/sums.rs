//! What came since the start: of the whole machine, and by what metrics are labelled with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use jiff::Timestamp;

use super::labels::Labels;
use super::labels::label;
use super::labels::of_cgroup;
use super::used::Used;
use crate::figures::FIGURES;
use crate::files::Dev;
use crate::model;
use crate::names::Names;
use crate::pivot;
use crate::plan::Plan;
use crate::room::Table;
use crate::sample::Counters;
use crate::sample::Sample;
use crate::sample::Sparse;

/// Ticks without anything after which a series makes room for another one.
const IDLE: u64 = 600;

/// What came with these labels.
pub(super) struct Sum {
    pub labels: Labels,
    pub counters: Counters,
    /// Since when.
    pub since: Timestamp,
}

struct Series {
    sum: Counters,
    since: Timestamp,
    /// When it last did something.
    tick: u64,
}

/// What a number is called, and when that was looked up.
struct Known {
    labels: Labels,
    version: u64,
    /// When it last did something.
    tick: u64,
}

/// Series of one kind, so many at most. What has none is the rest of the line above them.
///
/// They are kept by their labels: what is made anew with the name of one that is gone goes on counting for it, and a number
/// that stands for something else by now has another series.
pub(super) struct Kind<K> {
    room: usize,
    known: HashMap<K, Known>,
    all: HashMap<Labels, Series>,
    /// The last tick in which room was made for what is known.
    swept: u64,
    /// The last tick in which no series could make room: none can for the rest of it, since what is idle does not begin to
    /// be within a tick.
    crowded: u64,
}

impl<K: std::hash::Hash + Eq> Kind<K> {
    fn new(room: usize) -> Self {
        Self { room, known: HashMap::new(), all: HashMap::new(), swept: 0, crowded: 0 }
    }

    /// Of this tick, which began at that time. What was looked up under another `version` of names is looked up again.
    fn add(
        &mut self,
        key: K,
        (tick, since): (u64, Timestamp),
        counters: &Sparse,
        version: u64,
        labels: impl FnOnce() -> Option<Labels>,
    ) {
        // Cgroups come and go. More than this are looked up each time.
        let mut full = self.known.len() >= 4 * self.room + 64;
        if full && self.swept < tick {
            self.swept = tick;
            self.known.retain(|_, known| known.tick + IDLE >= tick);
            full = self.known.len() >= 4 * self.room + 64;
        }
        let Some(labels) = looked_up(self.known.entry(key), full, (tick, version), labels) else { return };
        if let Some(series) = self.all.get_mut(&*labels) {
            series.sum.add_sparse(counters);
            series.tick = tick;
            return;
        }
        if self.crowded == tick && self.all.len() >= self.room {
            return;
        }
        let labels = labels.into_owned();
        if self.all.len() >= self.room {
            let oldest = self.all.iter().min_by_key(|(_, s)| s.tick);
            match oldest.filter(|(_, s)| s.tick + IDLE < tick).map(|(labels, _)| labels.clone()) {
                Some(oldest) => drop(self.all.remove(&oldest)),
                None => {
                    self.crowded = tick;
                    return;
                }
            }
        }
        let mut sum = Counters::default();
        sum.add_sparse(counters);
        self.all.insert(labels, Series { sum, since, tick });
    }

    /// The series, in the order of their labels.
    pub(super) fn list(&self) -> Vec<Sum> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_by_key(|(labels, _)| *labels);
        all.into_iter()
            .map(|(labels, s)| Sum { labels: labels.clone(), counters: s.sum, since: s.since })
            .collect()
    }
}

/// What a number is called in this tick. `None`: nothing that could be shown. `full`: no more are remembered.
fn looked_up<K>(
    place: Entry<'_, K, Known>,
    full: bool,
    (tick, version): (u64, u64),
    labels: impl FnOnce() -> Option<Labels>,
) -> Option<Cow<'_, Labels>> {
    match place {
        Entry::Occupied(place) => {
            let known = place.into_mut();
            known.tick = tick;
            if known.version != version {
                known.version = version;
                // What is unmounted and still in use is called what it was.
                if let Some(labels) = labels() {
                    known.labels = labels;
                }
            }
            Some(Cow::Borrowed(&known.labels))
        }
        Entry::Vacant(_) if full => labels().map(Cow::Owned),
        Entry::Vacant(place) => {
            let known = place.insert(Known { labels: labels()?, version, tick });
            Some(Cow::Borrowed(&known.labels))
        }
    }
}

/// What came of the commands that moments run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ran {
    /// Exit status 0.
    pub ok: u64,
    /// Another one, or it could not be started.
    pub failed: u64,
    /// Killed, since it did not end in time, or not before we did.
    pub killed: u64,
    /// Not run: that for the moment before of the same condition was still running.
    pub skipped: u64,
}

impl Ran {
    /// Each with its name.
    #[must_use]
    pub const fn list(self) -> [(&'static str, u64); 4] {
        [("ok", self.ok), ("failed", self.failed), ("killed", self.killed), ("skipped", self.skipped)]
    }
}

/// What came of the requests with metrics that were sent to a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Taken.
    pub ok: u64,
    /// Refused, for good.
    pub refused: u64,
    /// Left out, since too many waited.
    pub dropped: u64,
    /// Tried in vain, and tried again later.
    pub retried: u64,
    /// Points in those that were taken which the receiver did not take.
    pub refused_points: u64,
    /// What waits.
    pub queued_bytes: u64,
}

impl Pushed {
    /// Each with its name.
    #[must_use]
    pub const fn list(self) -> [(&'static str, u64); 4] {
        [("ok", self.ok), ("refused", self.refused), ("dropped", self.dropped), ("retried", self.retried)]
    }
}

/// All that metrics are made of.
pub struct Sums {
    /// Since when it is counted.
    pub since: Timestamp,
    pub(super) last: Option<Arc<Sample>>,
    pub(super) known: [bool; FIGURES],
    pub(super) of_rows: [bool; FIGURES],
    pub(super) of_files: [bool; FIGURES],
    pub(super) engine: &'static str,
    pub(super) cgroups: Kind<u64>,
    /// By device, and whether it is the device itself: mounting reads it, before a file of it can be.
    pub(super) mounts: Kind<(Dev, bool)>,
    pub(super) ticks: u64,
    /// Ticks that could not be recorded; `None` where nothing is.
    pub unrecorded: Option<u64>,
    /// Conditions, and how often each has come to hold.
    pub moments: Vec<(String, u64)>,
    /// What came of the commands that were run then; `None` where there are none.
    pub commands: Option<Ran>,
    /// What came of the requests to a receiver; `None` where there is none.
    pub pushed: Option<Pushed>,
    /// What is used, as it was measured last; `None`: not yet, or nobody asks.
    pub(super) used: Option<Used>,
    /// The tables in the kernel, as they were counted last.
    pub(super) tables: Vec<Table>,
    /// When the last sample was read.
    pub(super) read: Option<std::time::Instant>,
    pub(super) interval: std::time::Duration,
}

impl Sums {
    /// Nothing yet; with so many series of each kind.
    #[must_use]
    pub fn new(room: usize, interval: std::time::Duration) -> Self {
        Self {
            since: Timestamp::now(),
            last: None,
            known: [false; FIGURES],
            of_rows: [false; FIGURES],
            of_files: [false; FIGURES],
            engine: "exact",
            cgroups: Kind::new(room),
            mounts: Kind::new(room),
            ticks: 0,
            unrecorded: None,
            moments: Vec::new(),
            commands: None,
            pushed: None,
            used: None,
            tables: Vec::new(),
            read: None,
            interval,
        }
    }

    /// Adds what a tick saw.
    pub fn add(&mut self, sample: Sample, plan: &Plan, names: &mut dyn Names) {
        self.ticks += 1;
        // What is new came since the sample before.
        let tick = (self.ticks, self.last.as_ref().map_or(self.since, |last| last.time));
        self.engine = plan.engine.name();
        self.known = model::known(plan);
        self.of_rows = pivot::known(plan, false);
        self.of_files = pivot::known(plan, true);
        for row in &sample.rows {
            // A number is a cgroup's for ever.
            self.cgroups.add(row.cgroup, tick, &row.counters, 0, || {
                let group = names.cgroup(row.cgroup, row.tgid);
                // One that was gone before it had a name has no series.
                group.path.starts_with('/').then(|| of_cgroup(&group))
            });
        }
        if let Some(row) = sample.files.first() {
            // Looks whether anything was mounted since.
            names.mounts(row.file.dev);
        }
        for row in &sample.files {
            let (dev, itself) = (row.file.block.unwrap_or(row.file.dev), row.file.block.is_some());
            self.mounts.add((dev, itself), tick, &row.counters, names.version(), || {
                let mounts = names.mounts(dev);
                let mount = if itself { Some("") } else { mounts.point(dev) };
                let mount = label(mount?);
                Some(vec![("device", label(&mounts.device(dev))), ("mount", mount)])
            });
        }
        self.read = Some(std::time::Instant::now());
        self.last = Some(Arc::new(Sample { rows: Vec::new(), files: Vec::new(), ..sample }));
    }

    /// Whether samples still come.
    #[must_use]
    pub fn alive(&self) -> bool {
        let late = (self.interval * 3).max(std::time::Duration::from_secs(10));
        self.read.is_some_and(|read| read.elapsed() < late)
    }
}
