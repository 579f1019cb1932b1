//! What was counted since the start, row by row: samples hold only what came since the one before.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::files::File;
use crate::sample::Comm;
use crate::sample::FileSample;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;

/// Rows that are kept at most, of each kind: a machine that starts thousands of processes a minute must not fill the
/// memory of who watches it.
const ROOM: usize = 65_536;

/// What is counted on together: nothing that was counted for one user or cgroup moves to another.
type Thread = (u32, u32, u32, u64, Comm, Comm);
type OfFile = (u32, u32, u64, Comm, Arc<File>);

fn thread(r: &RowSample) -> Thread {
    (r.tgid, r.tid, r.uid, r.cgroup, r.process, r.comm)
}

fn of_file(f: &FileSample) -> OfFile {
    (f.tgid, f.uid, f.cgroup, f.process, f.file.clone())
}

/// Rows that are counted on.
#[derive(Debug)]
pub struct Whole {
    /// The sample before the first interval.
    pub first: Sample,
    /// One that has the rows of all intervals so far.
    pub sum: Sample,
    /// Rows that had to be forgotten.
    pub forgotten: u64,
    threads: HashMap<Thread, usize>,
    files: HashMap<OfFile, usize>,
    room: usize,
}

impl Whole {
    /// Begins after this sample.
    #[must_use]
    pub fn new(first: &Sample) -> Self {
        Self::with_room(first, ROOM)
    }

    fn with_room(first: &Sample, room: usize) -> Self {
        let first = Sample { rows: Vec::new(), files: Vec::new(), ..first.clone() };
        let sum = first.clone();
        Self { first, sum, forgotten: 0, threads: HashMap::new(), files: HashMap::new(), room }
    }

    /// Adds the next sample.
    pub fn add(&mut self, now: &Sample) {
        self.sum.at = now.at;
        self.sum.time = now.time;
        self.sum.total = now.total;
        self.sum.latency.clone_from(&now.latency);
        self.sum.lost.clone_from(&now.lost);
        self.sum.memory = now.memory;
        self.sum.classic.clone_from(&now.classic);
        // Mostly the same rows come in the same order: the one behind the last is looked at first.
        let mut next = 0;
        for row in &now.rows {
            next = self.thread(row, next) + 1;
        }
        next = 0;
        for file in &now.files {
            next = self.file(file, next) + 1;
        }
        self.forget();
    }

    fn thread(&mut self, row: &RowSample, guess: usize) -> usize {
        let same = |old: &RowSample| thread(old) == thread(row);
        let next = self.sum.rows.len();
        let at = match self.sum.rows.get(guess).is_some_and(same) {
            true => guess,
            false => *self.threads.entry(thread(row)).or_insert(next),
        };
        match self.sum.rows.get_mut(at) {
            Some(old) => {
                old.born = row.born;
                old.counters.add(&row.counters);
                if let Some(new) = &row.latency {
                    old.latency.get_or_insert_default().add(new);
                }
            }
            None => self.sum.rows.push(row.clone()),
        }
        at
    }

    fn file(&mut self, file: &FileSample, guess: usize) -> usize {
        let same = |old: &FileSample| {
            (old.tgid, old.uid, old.cgroup, old.process) == (file.tgid, file.uid, file.cgroup, file.process)
                && old.file == file.file
        };
        let next = self.sum.files.len();
        let at = match self.sum.files.get(guess).is_some_and(same) {
            true => guess,
            false => *self.files.entry(of_file(file)).or_insert(next),
        };
        match self.sum.files.get_mut(at) {
            Some(old) => {
                old.born = file.born;
                old.deleted = file.deleted;
                old.counters.add(&file.counters);
            }
            None => self.sum.files.push(file.clone()),
        }
        at
    }

    /// Leaves the busier three quarters where there are too many.
    fn forget(&mut self) {
        let keep = self.room / 4 * 3;
        if self.sum.rows.len() > self.room {
            self.sum.rows.sort_by_key(|r| Reverse(weight(&r.counters)));
            self.forgotten += (self.sum.rows.len() - keep) as u64;
            self.sum.rows.truncate(keep);
            let keys = self.sum.rows.iter().map(thread);
            self.threads = keys.enumerate().map(|(i, key)| (key, i)).collect();
        }
        if self.sum.files.len() > self.room {
            self.sum.files.sort_by_key(|f| Reverse(weight(&f.counters)));
            self.forgotten += (self.sum.files.len() - keep) as u64;
            self.sum.files.truncate(keep);
            let keys = self.sum.files.iter().map(of_file);
            self.files = keys.enumerate().map(|(i, key)| (key, i)).collect();
        }
    }
}

/// What a row is worth: everything that was counted, bytes and times as well, for what has only these.
fn weight(counters: &Sparse) -> u64 {
    counters.iter().fold(0, |sum, (_, n)| sum.saturating_add(n))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;
    use std::time::Instant;

    use super::*;
    use crate::sample::Counter;
    use crate::view::fixtures;

    #[test]
    fn rows_are_added_up_and_the_least_busy_ones_forgotten() {
        let start = Instant::now();
        let sample = |rows| Sample { rows, ..fixtures::sample(start, Duration::from_secs(1), &[]) };
        let row = |pid, n| fixtures::process(pid, "dd", &[(Counter::ReadHits, n)]);
        let mut whole = Whole::with_room(&sample(vec![row(1, 100)]), 4);
        whole.add(&sample(vec![row(1, 5), row(2, 7)]));
        whole.add(&sample(vec![row(2, 1)]));
        let hits = |w: &Whole| -> Vec<_> {
            w.sum.rows.iter().map(|r| (r.tgid, r.counters.get(Counter::ReadHits))).collect()
        };
        assert_eq!(hits(&whole), [(1, 5), (2, 8)]);
        whole.add(&sample(vec![row(3, 9), row(4, 1), row(5, 6)]));
        assert_eq!(hits(&whole), [(3, 9), (2, 8), (5, 6)]);
        assert_eq!(whole.forgotten, 2);
        // What is left is still found.
        whole.add(&sample(vec![row(5, 1), row(2, 1)]));
        assert_eq!(hits(&whole), [(3, 9), (2, 9), (5, 7)]);
    }

    #[test]
    fn what_one_cgroup_did_stays_its_own() {
        let start = Instant::now();
        let sample = |rows| Sample { rows, ..fixtures::sample(start, Duration::from_secs(1), &[]) };
        let row = |cgroup, n| RowSample { cgroup, ..fixtures::process(1, "dd", &[(Counter::ReadHits, n)]) };
        let mut whole = Whole::new(&sample(Vec::new()));
        for (cgroup, n) in [(5, 3090), (6, 300), (5, 1), (6, 9)] {
            whole.add(&sample(vec![row(cgroup, n)]));
        }
        let rows = whole.sum.rows.iter().map(|r| (r.cgroup, r.counters.get(Counter::ReadHits)));
        assert_eq!(rows.collect::<Vec<_>>(), [(5, 3091), (6, 309)]);
    }
}
