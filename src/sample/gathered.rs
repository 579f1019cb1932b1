//! Rows of several readings of the tables, as those of one.
//!
//! An interval may last for minutes, in which more threads come and go than the kernel programs have room for. So the tables are
//! read in between, which frees the rows of those that have gone, and what they said waits here for the end of the interval.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use super::Comm;
use super::Counter;
use super::Counters;
use super::FileSample;
use super::Lost;
use super::RowSample;
use crate::files::File;

/// A thread under one name, and when its process began: of one id it tells which.
type Thread = (u32, u32, u32, u64, Comm, Comm, Option<u64>);
type OfFile = (u32, u32, u64, Comm, Arc<File>);

fn thread(row: &RowSample) -> Thread {
    let begun = row.family.map(|family| family.begun);
    (row.tgid, row.tid, row.uid, row.cgroup, row.process, row.comm, begun)
}

fn of_file(row: &FileSample) -> OfFile {
    (row.tgid, row.uid, row.cgroup, row.process, Arc::clone(&row.file))
}

/// Rows of one kind.
#[derive(Debug)]
struct Kind<K, R> {
    key: fn(&R) -> K,
    add: fn(&mut R, &R),
    rows: Vec<R>,
    at: HashMap<K, usize>,
    room: usize,
    /// Rows that were left out, each as often as it was read.
    left_out: u64,
}

impl<K: Eq + Hash, R> Kind<K, R> {
    fn new(key: fn(&R) -> K, add: fn(&mut R, &R), room: usize) -> Self {
        Self { key, add, rows: Vec::new(), at: HashMap::new(), room, left_out: 0 }
    }

    fn gather(&mut self, new: Vec<R>) {
        for row in new {
            match self.at.entry((self.key)(&row)) {
                Entry::Occupied(at) => {
                    if let Some(old) = self.rows.get_mut(*at.get()) {
                        (self.add)(old, &row);
                    }
                }
                Entry::Vacant(_) if self.rows.len() >= self.room => self.left_out += 1,
                Entry::Vacant(at) => {
                    at.insert(self.rows.len());
                    self.rows.push(row);
                }
            }
        }
    }

    fn take(&mut self, new: &mut Vec<R>) {
        if self.rows.is_empty() {
            return;
        }
        self.gather(std::mem::take(new));
        // With their memory: the next interval may be a quiet one.
        self.at = HashMap::new();
        *new = std::mem::take(&mut self.rows);
    }
}

/// What was read since the last sample.
#[derive(Debug)]
pub struct Gathered {
    threads: Kind<Thread, RowSample>,
    files: Kind<OfFile, FileSample>,
}

impl Gathered {
    /// Room for so many threads, and for so many files of processes.
    #[must_use]
    pub fn new(threads: usize, files: usize) -> Self {
        Self {
            threads: Kind::new(thread, RowSample::add, threads),
            files: Kind::new(of_file, FileSample::add, files),
        }
    }

    /// Keeps what a reading found.
    pub fn add(&mut self, threads: Vec<RowSample>, files: Vec<FileSample>) {
        self.threads.gather(threads);
        self.files.gather(files);
    }

    /// Adds what was kept to what the last reading of an interval found.
    pub fn take(&mut self, threads: &mut Vec<RowSample>, files: &mut Vec<FileSample>) {
        self.threads.take(threads);
        self.files.take(files);
    }

    /// Adds readings of rows for which there was no room here, since the start, to what had none in the kernel: a line
    /// that is the sum of chosen rows is unknown then, too.
    pub fn tell(&self, total: &mut Counters, lost: &mut Lost) {
        let threads = ("processes_full", Counter::LostRows, self.threads.left_out);
        let files = ("files_full", Counter::LostFiles, self.files.left_out);
        for (why, counter, more) in [threads, files] {
            total.0[counter as usize] += more;
            lost.add(&Lost { by_reason: vec![(why.into(), more)] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Family;
    use crate::view::fixtures;

    fn row(pid: u32, begun: u64, hits: u64) -> RowSample {
        let family = Family { begun, parent: 1, parent_begun: 0, parent_name: Comm::default() };
        RowSample { family: Some(family), ..fixtures::process(pid, "reader", &[(Counter::ReadHits, hits)]) }
    }

    fn hits(rows: &[RowSample]) -> Vec<(u32, u64)> {
        rows.iter().map(|r| (r.tgid, r.counters.at(Counter::ReadHits as usize))).collect()
    }

    /// What has no row, by the line of chosen rows and as it is told, where one had no room in the kernel before.
    fn told(all: &Gathered) -> (u64, u64) {
        let (mut total, mut lost) =
            (Counters::default(), Lost { by_reason: vec![("processes_full".into(), 1)] });
        total.0[Counter::LostRows as usize] = 1;
        all.tell(&mut total, &mut lost);
        (total.get(Counter::LostRows), lost.total())
    }

    #[test]
    fn rows_of_several_readings_are_added_up() {
        let mut all = Gathered::new(9, 9);
        all.add(vec![row(7, 1, 5), row(8, 1, 1)], Vec::new());
        all.add(vec![row(9, 1, 2), row(7, 1, 3)], Vec::new());
        // The same id, and another process.
        let (mut rows, mut files) = (vec![row(8, 2, 4), row(7, 1, 1)], Vec::new());
        all.take(&mut rows, &mut files);
        assert_eq!(hits(&rows), [(7, 9), (8, 1), (9, 2), (8, 4)]);
        assert_eq!(told(&all), (1, 1));
        // The next interval begins with nothing.
        let mut rows = vec![row(7, 1, 6)];
        all.take(&mut rows, &mut files);
        assert_eq!(hits(&rows), [(7, 6)]);
    }

    #[test]
    fn what_finds_no_room_is_told() {
        let mut all = Gathered::new(2, 1);
        all.add((1..=4).map(|pid| row(pid, 1, 1)).collect(), Vec::new());
        let (mut rows, mut files) = (vec![row(2, 1, 1), row(3, 1, 1)], Vec::new());
        all.take(&mut rows, &mut files);
        assert_eq!(hits(&rows), [(1, 1), (2, 2)]);
        assert_eq!(told(&all), (4, 4));
    }
}
