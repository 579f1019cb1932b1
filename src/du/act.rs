//! Dropping files from the cache and reading them into it.

mod report;
mod warm;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustix::fs::Advice;
use rustix::fs::FileType;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::found::End;
use super::found::Found;
use super::kinds;
use super::opening;
use super::options::Options;
use super::options::Task;
use super::progress;
use super::ranges::Run;
use super::residency;
use super::residency::Ask;
use super::residency::Residency;
use super::residency::Unknown;
use super::row::Row;
use super::set;
use super::totals::Totals;
use crate::exit::Failure;
use crate::text::numbers::bytes;
use report::Report;

/// What came of one file, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deed {
    /// Cached before; `None` where the kernel keeps it from us: whoever may read may load all the same.
    pub before: Option<u64>,
    /// Cached afterwards; for a dry run, what is cached now.
    pub after: Option<u64>,
    /// Of these, dirty ones, where that is known.
    pub dirty: Option<u64>,
    /// Whether memory is the only place of the file: nothing of it can be dropped.
    pub memory: bool,
    /// Why `before` is not known.
    pub why: Option<Unknown>,
}

/// What is cached, if we may know it. Not to know it is no reason to do nothing.
fn cached(fd: BorrowedFd<'_>, ask: Ask) -> Result<Known, Unknown> {
    match ask.residency(fd) {
        Ok(known) => Ok(Ok(known)),
        Err(why) if why.withheld() => Ok(Err(why)),
        Err(why) => Err(why),
    }
}

/// What is cached, or why it is kept from us.
type Known = Result<Residency, Unknown>;

/// Whether memory is the only place of a file.
fn memory(fd: BorrowedFd<'_>) -> bool {
    kinds::kind(fd).is_some_and(kinds::memory)
}

/// Drops what can be dropped of a file: with `flush`, dirty pages as well.
///
/// # Errors
/// Why it could not be done.
pub fn evict(fd: impl AsFd, flush: bool, ask: Ask) -> Result<Deed, Unknown> {
    let before = cached(fd.as_fd(), ask)?;
    if memory(fd.as_fd()) {
        return deed(&fd, before, ask);
    }
    if flush {
        rustix::fs::fdatasync(&fd)?;
    }
    rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
    // Pages on their way to the LRU lists of other processors escape the first time.
    if cached(fd.as_fd(), ask)?.map_or(true, |r| r.cached > r.more.map_or(0, |m| m.dirty + m.writeback)) {
        rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
    }
    deed(&fd, before, ask)
}

/// Reads a file into the cache, its holes left out: they would fill memory with zeros. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
pub fn load(fd: impl AsFd, ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let before = cached(fd.as_fd(), ask)?;
    let size = residency::size(fd.as_fd())?;
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(&fd, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A device, or a file system that knows no holes.
            Err(_) => at,
        };
        let end = rustix::fs::seek(&fd, SeekFrom::Hole(data)).unwrap_or(size);
        let end = if end > data { end } else { size };
        warm::whole(fd.as_fd(), data, end, bytes)?;
        at = end;
    }
    deed(&fd, before, ask)
}

fn deed(fd: impl AsFd, before: Known, ask: Ask) -> Result<Deed, Unknown> {
    let after = cached(fd.as_fd(), ask)?.ok();
    let dirty = after.and_then(|r| r.more).map(|m| m.dirty + m.writeback);
    let (why, before) = (before.err(), before.ok().map(|r| r.cached));
    Ok(Deed { before, after: after.map(|r| r.cached), dirty, memory: memory(fd.as_fd()), why })
}

/// Reads exactly these pages into the cache, and none ahead of them. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
pub fn load_runs(fd: impl AsFd, runs: &[Run], ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let before = cached(fd.as_fd(), ask)?;
    warm::exactly(fd.as_fd(), runs, residency::size(fd.as_fd())?, bytes)?;
    deed(&fd, before, ask)
}

/// Does it to all files, in parallel, and says on a terminal how far it has come.
fn each<T: Sync>(
    options: &Options,
    files: &[T],
    deed: impl Fn(&T, &AtomicU64) -> Result<Deed, Unknown> + Sync,
) -> Vec<Result<Deed, Unknown>> {
    let (done, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let so_far = || {
        let read = match read.load(Relaxed) {
            0 => String::new(),
            n => format!(", {} read", bytes(n)),
        };
        format!("{} of {} files{read}", done.load(Relaxed), files.len())
    };
    let one = |file| {
        let result = deed(file, &read);
        done.fetch_add(1, Relaxed);
        result
    };
    progress::during(options.shows_progress(), so_far, || files.par_iter().map(one).collect())
}

/// What a dry run says.
fn dry(totals: &Totals, memory: bool, why: Option<Unknown>) -> Deed {
    let cached = totals.cached();
    Deed { before: cached, after: cached, dirty: totals.only_cachestat(totals.dirty), memory, why }
}

/// Evicts or loads files that were found.
///
/// # Errors
/// When the report cannot be written.
pub fn run(
    options: &Options,
    found: Found,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let ask = options.ask();
    let mut report = Report::new(if options.task == Task::Load { "load" } else { "evict" }, options);
    let needed = options.needed();
    // Who may not know what is cached may act all the same.
    let open = |r: &Row| r.why.is_none_or(Unknown::withheld);
    let todo: Vec<Row> = found.rows.into_iter().filter(|r| open(r) && needed(&r.totals)).collect();
    report.besides = found.total.cached.saturating_sub(todo.iter().map(|r| r.totals.cached).sum());
    let pages = todo.iter().map(|r| r.totals.pages.saturating_sub(r.totals.cached));
    report.most = pages.fold(0, u64::saturating_add);
    let done = each(options, &todo, |r, read| match (options.dry_run, &options.task) {
        (true, _) => Ok(dry(&r.totals, memory(r.open()?.0.as_fd()), r.why)),
        (false, Task::Evict { flush }) => evict(&r.open()?.0, *flush, ask),
        (false, _) => load(&r.open()?.0, ask, read),
    });
    for (row, done) in todo.iter().zip(done) {
        // Trees change, and processes close files.
        if matches!(done, Err(Unknown::Vanished)) {
            continue;
        }
        report.add(&row.path, done);
    }
    report.print(out, err)
}

/// Opens a file of a set, if it is the one that was saved. Sets may come from others, and name what they like: that is no
/// reason to read devices, or what lies in the directory where we happen to be.
fn reopened(file: &set::File, trust: bool) -> Result<OwnedFd, Unknown> {
    if !trust && file.path.is_relative() {
        return Err(Unknown::Untrusted("not a whole path"));
    }
    let (fd, stat) = opening::open_named(&file.path)?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile {
        if !trust {
            return Err(Unknown::Untrusted("not a regular file"));
        }
    } else if !file.is(&stat) {
        return Err(Unknown::Replaced);
    }
    Ok(fd)
}

/// Reads the pages of a set into the cache.
///
/// # Errors
/// When the report cannot be written.
pub fn restore(
    set: &set::Set,
    options: &Options,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let ask = options.ask();
    if set.page_size != rustix::param::page_size() as u64 {
        return Err(Failure::failed(format!("the set was made with pages of {} bytes", set.page_size))
            .remedy("make it anew on this machine"));
    }
    let mut report = Report::new("restore", options);
    let pages = set.files.iter().flat_map(|f| &f.runs).map(|r| r.pages);
    report.most = pages.fold(0, u64::saturating_add);
    let done = each(options, &set.files, |file, read| {
        let fd = reopened(file, options.trust)?;
        if options.dry_run {
            let before = cached(fd.as_fd(), ask)?;
            return deed(fd, before, ask);
        }
        load_runs(fd, &file.runs, ask, read)
    });
    for (file, done) in set.files.iter().zip(done) {
        report.add(&file.path, done);
    }
    report.print(out, err)
}
