//! What was counted since the start, row by row: samples hold only what came since the one before.
//!
//! A machine that starts a hundred processes a second must not fill the memory of who watches it, and what was counted
//! must not be lost either. So rows of processes that have ended are added up by what outlives them
//! ([`crate::sample::Folded`]): they go on counting for their command, user, cgroup, file and device, and as processes
//! they are part of the row for the rest, which is whatever the rows leave of the line above them. Whoever was put away
//! has no row of its own any more, should it come again: a total that was seen never falls.

mod fold;
mod seen;

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use crate::files::File;
use crate::names::Names;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Item;
use crate::pivot::of_file;
use crate::pivot::of_row;
use crate::sample::Comm;
use crate::sample::Counters;
use crate::sample::Family;
use crate::sample::FileSample;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;
use fold::Kept;
use fold::Kind;
use fold::Room;
use fold::Shared;

/// What is counted on together: nothing that was counted for one user or cgroup moves to another.
type Thread = (u32, u32, u32, u64, Comm, Comm);
type OfFile = (u32, u32, u64, Comm, Arc<File>);

impl Kept for RowSample {
    type Key = Thread;

    fn key(&self) -> Thread {
        (self.tgid, self.tid, self.uid, self.cgroup, self.process, self.comm)
    }

    fn same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    fn tgid(&self) -> u32 {
        self.tgid
    }

    fn counters(&self) -> &Sparse {
        &self.counters
    }

    fn item(&self) -> Item<'_> {
        of_row(self)
    }

    fn add(&mut self, new: &Self) {
        RowSample::add(self, new);
    }

    fn shared(&self, by: By) -> Option<Shared> {
        if by == By::Process && self.tgid == 0 {
            let above = self.family.map(|f| (f.parent, f.parent_begun));
            return Some(Shared::Ended(self.process, self.cgroup, above));
        }
        fold::owner(by, (self.tgid, self.process, self.uid, self.cgroup))
    }

    fn of_thread(&self) -> Option<&RowSample> {
        Some(self)
    }

    fn without_latency(&self) -> Self {
        Self { latency: None, ..self.clone() }
    }

    fn ended(&self, family: Option<Family>) -> Self {
        Self { tgid: 0, tid: 0, comm: self.process, family, ..self.without_latency() }
    }
}

impl Kept for FileSample {
    type Key = OfFile;

    fn key(&self) -> OfFile {
        (self.tgid, self.uid, self.cgroup, self.process, self.file.clone())
    }

    fn same(&self, other: &Self) -> bool {
        (self.tgid, self.uid, self.cgroup, self.process)
            == (other.tgid, other.uid, other.cgroup, other.process)
            && self.file == other.file
    }

    fn tgid(&self) -> u32 {
        self.tgid
    }

    fn counters(&self) -> &Sparse {
        &self.counters
    }

    fn item(&self) -> Item<'_> {
        of_file(self)
    }

    fn add(&mut self, new: &Self) {
        FileSample::add(self, new);
    }

    fn shared(&self, by: By) -> Option<Shared> {
        match by {
            By::File => Some(Shared::File(self.file.clone())),
            By::Device => {
                let itself = self.file.block;
                Some(Shared::Device(itself.unwrap_or(self.file.dev), itself.is_some()))
            }
            _ => fold::owner(by, (self.tgid, self.process, self.uid, self.cgroup)),
        }
    }

    fn without_latency(&self) -> Self {
        self.clone()
    }

    fn of_thread(&self) -> Option<&RowSample> {
        None
    }

    fn ended(&self, _: Option<Family>) -> Self {
        Self { tgid: 0, ..self.clone() }
    }
}

/// Rows that are counted on.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The sample before the first interval.
    pub first: Sample,
    /// One that has the rows of all intervals so far, and as its totals what is above them.
    pub sum: Sample,
    threads: Kind<RowSample>,
    files: Kind<FileSample>,
    /// When the process with an id began.
    begun: HashMap<u32, u64>,
}

impl Whole {
    /// Begins after this sample; the filter is that of all samples to come.
    #[must_use]
    pub fn new(first: &Sample, filter: &Filter) -> Self {
        Self::with_room(first, filter, Room::default())
    }

    #[cfg(test)]
    pub(crate) fn with_little_room(first: &Sample, filter: &Filter) -> Self {
        Self::with_room(first, filter, Room { few: 4, rows: 12, folded: 20 })
    }

    fn with_room(first: &Sample, filter: &Filter, room: Room) -> Self {
        let first = Sample { rows: Vec::new(), files: Vec::new(), ..first.clone() };
        let sum = first.clone();
        // Rows by owner come from files where threads do not tell.
        let files: &[By] = match filter.files() {
            true => &[By::Comm, By::User, By::Cgroup, By::File, By::Device],
            false => &[By::File, By::Device],
        };
        let threads = Kind::new(&[By::Comm, By::User, By::Cgroup], true, room);
        let files = Kind::new(files, filter.files(), room.of_files());
        Self { first, sum, threads, files, begun: HashMap::new() }
    }

    /// Adds the next sample. `alive` says whether there is a process with an id.
    pub fn add(&mut self, now: &Sample, filter: &Filter, names: &mut dyn Names, alive: &dyn Fn(u32) -> bool) {
        self.sum.at = now.at;
        self.sum.time = now.time;
        self.sum.latency.clone_from(&now.latency);
        self.sum.lost.clone_from(&now.lost);
        self.sum.memory = now.memory;
        self.sum.classic.clone_from(&now.classic);
        // These rise since the start by themselves.
        self.sum.evictors.clone_from(&now.evictors);
        let again = self.reused(&now.rows);
        let mut counted = (Counters::default(), Counters::default());
        if again.is_empty() {
            self.take((&now.rows, &now.files), filter, names, alive, &mut counted);
        } else {
            let older = |tgid: u32, at: u64| again.get(&tgid).is_some_and(|newer| at < *newer);
            let (old, new): (Vec<_>, Vec<_>) =
                now.rows.iter().cloned().partition(|r| older(r.tgid, r.family.map_or(u64::MAX, |f| f.begun)));
            let (old_files, new_files): (Vec<_>, Vec<_>) =
                now.files.iter().cloned().partition(|f| older(f.tgid, f.born));
            self.take((&old, &old_files), filter, names, alive, &mut counted);
            let ended: HashSet<u32> = again.into_keys().collect();
            let sum = &mut self.sum;
            self.threads.end((&mut sum.rows, &mut sum.folded.threads), &ended, alive);
            self.files.end((&mut sum.files, &mut sum.folded.files), &ended, alive);
            self.take((&new, &new_files), filter, names, alive, &mut counted);
        }
        let (threads, files) = counted;
        let sum = &mut self.sum;
        if filter.is_empty() {
            sum.total = now.total;
            sum.by_file = now.by_file;
        } else {
            sum.total.add(&threads);
            sum.by_file.get_or_insert_default().add(&files);
            // The difference is what was added.
            self.first.by_file.get_or_insert_default();
        }
    }

    /// Processes whose id another one has by now, and when that began.
    fn reused(&mut self, rows: &[RowSample]) -> HashMap<u32, u64> {
        let mut again = HashMap::new();
        for (tgid, begun) in rows.iter().filter_map(|r| Some((r.tgid, r.family?.begun))) {
            let known = self.begun.entry(tgid).or_insert(begun);
            // A late word of the one before must not end the one that counts already.
            let counts = |r: &RowSample| r.tgid == tgid && r.family.is_some_and(|f| f.begun == *known);
            if *known < begun || *known > begun && !self.sum.rows.iter().any(counts) {
                *known = begun.max(*known);
                again.insert(tgid, *known);
            }
        }
        if self.begun.len() > 2 * (self.sum.rows.len() + rows.len()) + 1024 {
            let kept: HashSet<u32> = self.sum.rows.iter().chain(rows).map(|r| r.tgid).collect();
            self.begun.retain(|tgid, _| kept.contains(tgid));
        }
        again
    }

    /// Adds rows, and what those counted that the filter takes.
    fn take(
        &mut self,
        (threads, files): (&[RowSample], &[FileSample]),
        filter: &Filter,
        names: &mut dyn Names,
        alive: &dyn Fn(u32) -> bool,
        counted: &mut (Counters, Counters),
    ) {
        let mut takes = |item: &Item<'_>| filter.is_empty() || filter.takes(item, names);
        let sum = &mut self.sum;
        let new = self.threads.add((&mut sum.rows, &mut sum.folded.threads), threads, &mut takes, alive);
        counted.0.add(&new);
        let new = self.files.add((&mut sum.files, &mut sum.folded.files), files, &mut takes, alive);
        counted.1.add(&new);
    }

    /// Whether a part of what this row belongs to, in rows of this kind, was forgotten: then it has none any more.
    #[must_use]
    pub(crate) fn is_forgotten(&self, by: By, files: bool, row: usize) -> bool {
        match files {
            true => self.files.is_forgotten(by, (&self.sum.files, &self.sum.folded.files), row),
            false => self.threads.is_forgotten(by, (&self.sum.rows, &self.sum.folded.threads), row),
        }
    }

    /// The line above the rows of all intervals so far.
    #[must_use]
    pub fn line(&self, files: bool) -> Counters {
        crate::model::line(&self.first, &self.sum, files)
    }
}

#[cfg(test)]
mod tests;
