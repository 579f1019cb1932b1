//! What is shown: a file, a directory or the total.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::Statx;

use super::opening;
use super::opening::Aim;
use super::residency::Unknown;
use super::totals::Totals;
use crate::options::OneOf;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory with everything below it.
    Directory,
    /// Everything that is looked at.
    Total,
}

impl Kind {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Total => "total",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its path; made of the operand's and the names below it.
    pub path: PathBuf,
    /// How far below the operand; 0 is the operand.
    pub depth: usize,
    /// What it is.
    pub kind: Kind,
    /// The figures.
    pub totals: Totals,
    /// Why nothing is known of a file.
    pub why: Option<Unknown>,
    /// Processes that have the file open or mapped, where these were requested.
    pub processes: Vec<u32>,
    /// How to open the file where its path does not do.
    pub via: Option<Via>,
}

/// A file by way of a process that has it: it may be deleted, or lie in another mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    /// The link in /proc.
    pub link: PathBuf,
    /// Device and inode that it led to.
    pub inode: (u64, u64),
}

impl Row {
    /// A row without processes.
    #[must_use]
    pub fn new(kind: Kind, path: PathBuf, depth: usize, totals: Totals, why: Option<Unknown>) -> Self {
        Self { path, depth, kind, totals, why, processes: Vec::new(), via: None }
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`Unknown::Vanished`] for a file that a process has closed meanwhile, else why it cannot be opened, or must not.
    pub(super) fn open(&self, aim: Aim) -> Result<(OwnedFd, Statx), Unknown> {
        match &self.via {
            Some(via) => opening::open_same(&via.link, via.inode, aim),
            None => opening::open_named(&self.path, aim),
        }
    }
}

/// What rows are sorted by; figures from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Cached pages.
    Cached,
    /// Size on disk.
    Size,
    /// Cached part of the pages.
    Percent,
    /// Pages to be written.
    Dirty,
    /// Number of files.
    Files,
    /// The path, from A to Z.
    Name,
}

impl OneOf for Sort {
    const ALL: &'static [Self] =
        &[Sort::Cached, Sort::Size, Sort::Percent, Sort::Dirty, Sort::Files, Sort::Name];

    fn name(self) -> &'static str {
        match self {
            Sort::Cached => "cached",
            Sort::Size => "size",
            Sort::Percent => "percent",
            Sort::Dirty => "dirty",
            Sort::Files => "files",
            Sort::Name => "name",
        }
    }
}

impl Sort {
    /// The column that has it, by its name in CSV.
    #[must_use]
    pub const fn column(self) -> Option<&'static str> {
        match self {
            Sort::Cached => Some("cached"),
            Sort::Size => Some("disk_bytes"),
            Sort::Percent => Some("cached_ratio"),
            Sort::Dirty => Some("dirty"),
            Sort::Files => Some("files"),
            Sort::Name => None,
        }
    }

    /// A figure of which one that has less comes later; 0 of what is not known, or has no such order.
    fn figure(self, totals: &Totals) -> u64 {
        match self {
            Sort::Cached => totals.cached().unwrap_or(0),
            Sort::Size => totals.disk,
            Sort::Dirty => totals.least_by_cachestat(totals.dirty).map_or(0, |(n, _)| n),
            Sort::Files => totals.files,
            Sort::Percent | Sort::Name => 0,
        }
    }

    /// The order in which rows are shown: what is not known stands below everything, equals go by path.
    #[must_use]
    pub fn order(self, a: &Row, b: &Row) -> Ordering {
        let (x, y) = (&a.totals, &b.totals);
        let figures = match self {
            Sort::Cached => y.cached().cmp(&x.cached()),
            Sort::Size => y.disk.cmp(&x.disk),
            Sort::Percent => y.ratio().partial_cmp(&x.ratio()).unwrap_or(Ordering::Equal),
            Sort::Dirty => y.least_by_cachestat(y.dirty).cmp(&x.least_by_cachestat(x.dirty)),
            Sort::Files => y.files.cmp(&x.files),
            Sort::Name => Ordering::Equal,
        };
        figures.then_with(|| a.path.cmp(&b.path))
    }
}

/// Takes rows as the walk finds them, from all of its threads.
pub trait Sink: Sync {
    /// Takes one.
    fn take(&self, row: Row);

    /// Takes one of a file that is open just now: what is to be done about it needs no other look for it.
    fn take_open(&self, row: Row, _file: BorrowedFd<'_>) {
        self.take(row);
    }

    /// Puts what is written of it behind other text, where that is all that is done: made by any thread, to be handed on in the
    /// order of the rows.
    fn written(&self, _row: &Row, _to: &mut Vec<u8>) -> bool {
        false
    }

    /// Takes what was written of rows.
    fn hand_on(&self, _written: Vec<u8>) {}

    /// Whether one with such figures would be taken: else none need be made.
    fn wants(&self, _totals: &Totals) -> bool {
        true
    }

    /// What it has done so far, in words, if that takes time.
    fn progress(&self) -> Option<String> {
        None
    }

    /// Whether nobody wants any more.
    fn gone(&self) -> bool {
        false
    }
}

/// A row in the order of a heap: the last of those to be shown on top, first to go.
struct Ranked(Row, Sort);

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.1.order(&self.0, &other.0)
    }
}

/// Keeps the first `top` rows of an order, or all: memory is bounded by what is shown, not by what is walked.
pub struct Keep {
    sort: Sort,
    top: usize,
    least: u64,
    /// Of a full list in an order of figures, the figure of its last row: whatever has less is thrown away, without the lock.
    floor: AtomicU64,
    rows: Mutex<BinaryHeap<Ranked>>,
}

impl Keep {
    /// Keeps `top` rows with at least `least` cached pages.
    #[must_use]
    pub fn new(sort: Sort, top: Option<usize>, least: u64) -> Self {
        Self { sort, top: top.unwrap_or(usize::MAX), least, floor: AtomicU64::new(0), rows: Mutex::default() }
    }

    /// The rows in their order.
    #[must_use]
    pub fn rows(self) -> Vec<Row> {
        let rows = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.into_sorted_vec().into_iter().map(|r| r.0).collect()
    }
}

impl Sink for Keep {
    fn wants(&self, totals: &Totals) -> bool {
        totals.cached().unwrap_or(0) >= self.least && self.sort.figure(totals) >= self.floor.load(Relaxed)
    }

    fn take(&self, row: Row) {
        if !self.wants(&row.totals) {
            return;
        }
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push(Ranked(row, self.sort));
        if rows.len() > self.top {
            rows.pop();
            if let Some(Ranked(last, _)) = rows.peek() {
                self.floor.store(self.sort.figure(&last.totals), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, cached: u64, pages: u64) -> Row {
        let totals = Totals { files: 1, cached, pages, disk: pages, ..Totals::default() };
        Row::new(Kind::File, path.into(), 1, totals, None)
    }

    fn kept(sort: Sort, top: Option<usize>, least: u64) -> Vec<String> {
        let keep = Keep::new(sort, top, least);
        for r in [row("a", 1, 100), row("b", 5, 5), row("c", 3, 9), row("d", 0, 0), row("e", 3, 9)] {
            keep.take(r);
        }
        keep.rows().iter().map(|r| r.path.display().to_string()).collect()
    }

    #[test]
    fn the_first_rows_of_an_order_are_kept() {
        assert_eq!(kept(Sort::Cached, None, 0), ["b", "c", "e", "a", "d"]);
        assert_eq!(kept(Sort::Cached, Some(2), 0), ["b", "c"]);
        assert_eq!(kept(Sort::Size, Some(1), 0), ["a"]);
        assert_eq!(kept(Sort::Percent, None, 1), ["b", "c", "e", "a"]);
        assert_eq!(kept(Sort::Name, Some(3), 0), ["a", "b", "c"]);
    }
}
