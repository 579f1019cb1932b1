//! A second look at what was loaded: the last of it may have pushed out the first.
//!
//! Nothing is remembered of a file that was loaded: whatever lacks pages of its data now had them then. But for those that
//! could not be loaded, of which there are few, and those that were changed since, which are not judged: so what is told is
//! the least.

use std::collections::HashSet;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::fs::AtFlags;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;
use rustix::time::ClockId;

use super::pieces;
use super::report::Report;
use crate::du::open::inode;
use crate::du::opening::Aim;
use crate::du::options::Options;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::stream::Lines;
use crate::du::totals::Totals;

/// Looks a second time.
pub struct Again<'a> {
    report: &'a Report<'a>,
    lines: &'a Lines<'a>,
    least: u64,
    /// When it began, by the clock that file systems take the times of changes from.
    began: (i64, i64),
    /// Files that could not be loaded.
    never: Mutex<HashSet<(u64, u64)>>,
}

impl<'a> Again<'a> {
    pub(super) fn new(options: &Options, report: &'a Report<'a>, lines: &'a Lines<'a>) -> Self {
        let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
        let began = (now.tv_sec, now.tv_nsec);
        Self { report, lines, least: options.least(), began, never: Mutex::default() }
    }

    /// A file that could not be loaded.
    pub(super) fn never(&self, file: BorrowedFd<'_>) {
        if let Some(stat) = stat(file) {
            self.never.lock().unwrap_or_else(PoisonError::into_inner).insert(inode(&stat));
        }
    }

    /// Whether nobody reads any more what is told.
    pub(super) fn unread(&self) -> bool {
        self.lines.gone()
    }

    /// Whether a file may be judged.
    pub(super) fn judged(&self, stat: &Statx) -> bool {
        let changed = (stat.stx_ctime.tv_sec, i64::from(stat.stx_ctime.tv_nsec));
        changed < self.began
            && !self.never.lock().unwrap_or_else(PoisonError::into_inner).contains(&inode(stat))
    }

    fn look(&self, row: &Row, file: BorrowedFd<'_>) {
        let t = &row.totals;
        if row.kind != Kind::File || row.why.is_some() || t.cached >= t.pages {
            return;
        }
        if !stat(file).is_some_and(|stat| self.judged(&stat)) {
            return;
        }
        let mut wanted = 0;
        let counted = pieces(file, t.size, |_, _, pages| {
            wanted += pages;
            Ok(())
        });
        if counted.is_ok() && wanted.min(t.pages) > t.cached {
            self.report.gone(&row.path, t.cached, wanted.min(t.pages) - t.cached, self.lines);
        }
    }
}

fn stat(file: BorrowedFd<'_>) -> Option<Statx> {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).ok()
}

impl Sink for Again<'_> {
    fn wants(&self, totals: &Totals) -> bool {
        totals.cached < totals.pages && totals.cached >= self.least
    }

    fn gone(&self) -> bool {
        self.unread()
    }

    fn take(&self, row: Row) {
        if !self.wants(&row.totals) {
            return;
        }
        if let Ok((file, _)) = row.open(Aim::Look) {
            self.look(&row, file.as_fd());
        }
    }

    fn take_open(&self, row: Row, file: BorrowedFd<'_>) {
        self.look(&row, file);
    }
}
