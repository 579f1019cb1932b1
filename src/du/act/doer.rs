//! Acts on files as they are found, from all threads of the walk that finds them.

use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::Again;
use super::Deed;
use super::Known;
use super::dry;
use super::evict;
use super::load;
use super::memory;
use crate::du::finding;
use crate::du::opening::Aim;
use crate::du::options::Options;
use crate::du::options::Task;
use crate::du::residency::Ask;
use crate::du::residency::Unknown;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::totals::Totals;
use crate::text::numbers::bytes;

/// What is told of each file.
type Tell<'a> = &'a (dyn Fn(&Row, Result<Deed, Unknown>) + Sync);

/// Evicts or loads what it is given.
pub struct Doer<'a> {
    task: &'a Task,
    dry_run: bool,
    ask: Ask,
    least: u64,
    needed: fn(&Totals) -> bool,
    tell: Tell<'a>,
    again: Option<&'a Again<'a>>,
    /// Bytes read.
    read: AtomicU64,
    /// Files done.
    done: AtomicU64,
    /// Files that exist and cannot be acted on.
    refused: AtomicU64,
    /// Pages that files had cached which were acted on.
    cached: AtomicU64,
    /// Pages that were not.
    missing: AtomicU64,
}

impl<'a> Doer<'a> {
    /// One that tells what came of each file.
    #[must_use]
    pub(super) fn new(options: &'a Options, tell: Tell<'a>, again: &'a Again<'a>) -> Self {
        Self { again: Some(again), ..Self::alone(options, tell) }
    }

    /// One after which nobody looks a second time.
    #[must_use]
    pub fn alone(options: &'a Options, tell: Tell<'a>) -> Self {
        Self {
            task: &options.task,
            dry_run: options.dry_run,
            ask: options.ask(),
            least: options.least(),
            needed: options.needed(),
            tell,
            again: None,
            read: AtomicU64::new(0),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            missing: AtomicU64::new(0),
        }
    }

    /// Files that exist and cannot be acted on.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Pages that were cached of the files that were acted on.
    pub(super) fn cached(&self) -> u64 {
        self.cached.load(Relaxed)
    }

    /// Pages of these that were not, holes included.
    pub(super) fn missing(&self) -> u64 {
        self.missing.load(Relaxed)
    }

    fn act(&self, row: &Row, file: BorrowedFd<'_>) -> Result<Deed, Unknown> {
        let before: Known = row.why.map_or(Ok(row.totals.cached), Err);
        match (self.dry_run, self.task) {
            (true, _) => Ok(dry(&row.totals, memory(file), row.why)),
            (false, Task::Evict { flush }) => evict(file, before, *flush, self.ask),
            (false, _) => {
                let done = load(file, before, self.ask, &self.read);
                if let (Err(_), Some(again)) = (&done, self.again) {
                    again.never(file);
                }
                done
            }
        }
    }

    fn told(&self, row: &Row, done: Result<Deed, Unknown>) {
        self.done.fetch_add(1, Relaxed);
        self.cached.fetch_add(row.totals.cached, Relaxed);
        self.missing.fetch_add(row.totals.pages.saturating_sub(row.totals.cached), Relaxed);
        // Trees change, and processes close files.
        if !matches!(done, Err(Unknown::Vanished)) {
            (self.tell)(row, done);
        }
    }

    /// Whether something is to be done about a file. What cannot be known is no reason to do nothing, if we may read it.
    fn takes(&self, row: &Row) -> bool {
        if row.kind != Kind::File {
            return false;
        }
        match row.why {
            Some(why) if !why.withheld() => {
                self.refused.fetch_add(u64::from(finding::out_of_reach(why, false)), Relaxed);
                false
            }
            _ => self.wants(&row.totals),
        }
    }
}

impl Sink for Doer<'_> {
    fn wants(&self, totals: &Totals) -> bool {
        totals.cached().unwrap_or(0) >= self.least && (self.needed)(totals)
    }

    fn gone(&self) -> bool {
        self.again.is_some_and(Again::unread)
    }

    fn take(&self, row: Row) {
        if self.takes(&row) {
            let aim = if self.dry_run { Aim::Look } else { Aim::Act };
            let done = match row.open(aim) {
                Ok((file, _)) => self.act(&row, file.as_fd()),
                // It can be done, and is not, and so it is not opened.
                Err(why) if self.dry_run && why.withheld() => Ok(dry(&row.totals, false, Some(why))),
                Err(why) => Err(why),
            };
            self.told(&row, done);
        }
    }

    fn take_open(&self, row: Row, file: BorrowedFd<'_>) {
        if self.takes(&row) {
            let done = self.act(&row, file);
            self.told(&row, done);
        }
    }

    fn progress(&self) -> Option<String> {
        let (done, what) =
            (self.done.load(Relaxed), if *self.task == Task::Load { "loaded" } else { "done" });
        let read = match self.read.load(Relaxed) {
            0 => String::new(),
            n => format!(", {} read", bytes(n)),
        };
        Some(format!("{done} {what}{read}"))
    }
}
