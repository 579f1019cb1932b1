//! Dropping files from the cache and reading them into it.

mod again;
mod doer;
mod report;
mod restore;
mod warm;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use rustix::fs::Advice;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::finding;
use super::found::End;
use super::kinds;
use super::options::Options;
use super::options::Task;
use super::paths::Paths;
use super::ranges::Run;
use super::residency;
use super::residency::Ask;
use super::residency::Residency;
use super::residency::Unknown;
use super::stream;
use super::totals::Totals;
use crate::exit::Failure;
use again::Again;
use report::Report;

pub use doer::Doer;
pub use restore::restore;

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
    /// Of a file that was loaded, how many must be there afterwards: its data, or the pages of a set.
    pub wanted: u64,
}

impl Deed {
    /// Pages that were brought in, or were there, and are not there afterwards. At least so many: others may be there
    /// instead, those of holes.
    #[must_use]
    pub fn gone(&self) -> Option<u64> {
        self.after.map(|after| self.wanted.saturating_sub(after))
    }
}

/// What is cached, if we may know it. Not to know it is no reason to do nothing.
fn cached(fd: BorrowedFd<'_>, ask: Ask) -> Result<Result<Residency, Unknown>, Unknown> {
    match ask.residency(fd) {
        Ok(known) => Ok(Ok(known)),
        Err(why) if why.withheld() => Ok(Err(why)),
        Err(why) => Err(why),
    }
}

/// How many pages are cached, or why that is kept from us.
pub type Known = Result<u64, Unknown>;

/// Whether memory is the only place of a file.
fn memory(fd: BorrowedFd<'_>) -> bool {
    kinds::kind(fd).is_some_and(kinds::memory)
}

/// Drops what can be dropped of a file, of which so much was cached before: with `flush`, dirty pages as well.
///
/// # Errors
/// Why it could not be done.
pub fn evict(fd: impl AsFd, before: Known, flush: bool, ask: Ask) -> Result<Deed, Unknown> {
    if flush {
        rustix::fs::fdatasync(&fd)?;
    }
    rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
    let mut after = cached(fd.as_fd(), ask)?;
    // Pages on their way to the LRU lists of other processors escape the first time.
    if after.is_ok_and(|r| r.cached > r.more.map_or(0, |m| m.dirty + m.writeback)) && !memory(fd.as_fd())
        || after.is_err()
    {
        rustix::fs::fadvise(&fd, 0, None, Advice::DontNeed)?;
        after = cached(fd.as_fd(), ask)?;
    }
    // What has left is on no file system that keeps all.
    let memory = after.map_or(true, |r| r.cached > 0) && memory(fd.as_fd());
    Ok(Deed { memory, ..deed(before, after) })
}

/// Reads a file into the cache, its holes left out: they would fill memory with zeros. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
pub fn load(fd: impl AsFd, before: Known, ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let size = residency::size(fd.as_fd())?;
    let mut wanted = 0;
    pieces(fd.as_fd(), size, |from, to, pages| {
        wanted += pages;
        warm::whole(fd.as_fd(), from, to, bytes)
    })?;
    loaded(&fd, wanted, before, ask)
}

/// What of a file is data, not holes: first byte, the one after the last, and the pages of it that no piece before had.
fn pieces(
    fd: BorrowedFd<'_>,
    size: u64,
    mut take: impl FnMut(u64, u64, u64) -> Result<(), Unknown>,
) -> Result<(), Unknown> {
    let page = rustix::param::page_size() as u64;
    let (mut at, mut last) = (0, 0);
    while at < size {
        let data = match rustix::fs::seek(fd, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            // A device, or a file system that knows no holes.
            Err(_) => at,
        };
        let end = rustix::fs::seek(fd, SeekFrom::Hole(data)).unwrap_or(size);
        let end = if end > data { end } else { size };
        // Two pieces of data may share a page.
        take(data, end, end.div_ceil(page).saturating_sub(last.max(data / page)))?;
        (at, last) = (end, end.div_ceil(page));
    }
    Ok(())
}

/// What came of loading a file, which may have been truncated meanwhile.
fn loaded(fd: impl AsFd, wanted: u64, before: Known, ask: Ask) -> Result<Deed, Unknown> {
    let after = cached(fd.as_fd(), ask)?;
    let pages = match after {
        Ok(answer) => answer.pages,
        Err(_) => residency::size(fd.as_fd())?.div_ceil(rustix::param::page_size() as u64),
    };
    Ok(Deed { wanted: wanted.min(pages), ..deed(before, after) })
}

fn deed(before: Known, after: Result<Residency, Unknown>) -> Deed {
    let after = after.ok();
    let dirty = after.and_then(|r| r.more).map(|m| m.dirty + m.writeback);
    let why = before.err();
    Deed { before: before.ok(), after: after.map(|r| r.cached), dirty, memory: false, why, wanted: 0 }
}

/// Reads exactly these pages into the cache, and none ahead of them. Counts the `bytes` it has read.
///
/// # Errors
/// Why it could not be done.
fn load_runs(fd: impl AsFd, runs: &[Run], ask: Ask, bytes: &AtomicU64) -> Result<Deed, Unknown> {
    let before = cached_of(fd.as_fd(), runs, ask)?.map(|r| r.cached);
    let size = residency::size(fd.as_fd())?;
    warm::exactly(fd.as_fd(), runs, size, bytes)?;
    let after = cached_of(fd.as_fd(), runs, ask)?;
    Ok(Deed { wanted: wanted(runs, residency::size(fd.as_fd())?), ..deed(before, after) })
}

/// The same as [`cached`], but only pages of these runs count as cached, which are in order.
fn cached_of(fd: BorrowedFd<'_>, runs: &[Run], ask: Ask) -> Result<Result<Residency, Unknown>, Unknown> {
    let whole = match cached(fd, ask)? {
        Ok(known) => known,
        Err(why) => return Ok(Err(why)),
    };
    // There is nothing to look for where all is there, or nothing, or all is asked for.
    let asked = wanted(runs, whole.size);
    if whole.cached == 0 || whole.cached >= whole.pages || asked == whole.pages {
        return Ok(Ok(Residency { cached: whole.cached.min(asked), ..whole }));
    }
    match ask.ranges(fd) {
        Ok(there) => Ok(Ok(Residency { cached: common(runs, &there), ..whole })),
        Err(why) if why.withheld() => Ok(Err(why)),
        Err(why) => Err(why),
    }
}

/// Pages that are in both, each in order.
fn common(mut one: &[Run], mut other: &[Run]) -> u64 {
    let mut pages = 0;
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (one, other) {
        pages += a.end().min(b.end()).saturating_sub(a.start.max(b.start));
        if a.end() <= b.end() { one = after_a } else { other = after_b }
    }
    pages
}

/// Pages of these runs, as far as the file goes.
fn wanted(runs: &[Run], size: u64) -> u64 {
    let pages = size.div_ceil(rustix::param::page_size() as u64);
    runs.iter().map(|run| run.end().min(pages).saturating_sub(run.start)).sum()
}

/// What a dry run says.
fn dry(totals: &Totals, memory: bool, why: Option<Unknown>) -> Deed {
    let cached = totals.cached();
    Deed { before: cached, after: cached, dirty: totals.only_cachestat(totals.dirty), memory, why, wanted: 0 }
}

/// Evicts or loads files as they are found. What was loaded is looked for a second time when all of it has been.
///
/// # Errors
/// Wrong usage: a pattern, a process; and when the report cannot be written.
pub fn run(
    options: &Options,
    paths: &Paths,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<End, Failure> {
    let load = options.task == Task::Load;
    let report = Report::new(if load { "load" } else { "evict" }, options);
    let found = stream::pump(report.head(), out, |lines| {
        let again = Again::new(options, &report, lines);
        let tell = |row: &super::row::Row, done| report.add(&row.path, done, lines);
        let doer = Doer::new(options, &tell, &again);
        let mut found = finding::each_file(options, paths, &doer)?;
        found.missing |= doer.refused() > 0;
        report.looked(found.total.cached, &doer);
        if load && !options.dry_run && !lines.gone() {
            finding::each_file(&Options { quiet: true, ..options.clone() }, paths, &again)?;
        }
        report.last(lines);
        Ok(found)
    })?;
    let end = found.warn(err);
    Ok(end.and(report.print(out, err)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn what_two_lists_of_runs_have_in_common() {
        let runs = |all: &[(u64, u64)]| -> Vec<Run> {
            all.iter().map(|&(start, pages)| Run { start, pages, dirty: None }).collect()
        };
        for (one, other, pages) in [
            (&[][..], &[(0, 9)][..], 0),
            (&[(0, 10)], &[(2, 3), (8, 5)], 5),
            (&[(0, 2), (4, 2), (8, 2)], &[(1, 8)], 4),
            (&[(0, 2), (4, 2)], &[(2, 2), (6, 2)], 0),
            (&[(3, 4)], &[(3, 4)], 4),
        ] {
            let (one, other) = (runs(one), runs(other));
            assert_eq!((common(&one, &other), common(&other, &one)), (pages, pages), "{one:?} {other:?}");
        }
    }

    /// What else is cached of the file is not of the set, nor is what of the set has gone: as mincore(2) has it.
    #[test]
    fn only_pages_of_the_set_were_there() {
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 64 * page]).unwrap();
        file.sync_all().unwrap();
        for advice in [libc::POSIX_FADV_DONTNEED, libc::POSIX_FADV_RANDOM] {
            // SAFETY: takes no memory.
            assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) }, 0);
        }
        // Some of the first run, one of the second, and some of none.
        for n in [2, 3, 9, 10, 11, 61] {
            file.read_exact_at(&mut [0], n * page as u64).unwrap();
        }
        let runs = [Run { start: 8, pages: 8, dirty: None }, Run { start: 60, pages: 8, dirty: None }];
        let there = resident(&file, 64);
        let of = |run: &Run| there.iter().skip(run.start as usize).take(8).filter(|there| **there).count();
        let expected = runs.iter().map(of).sum::<usize>() as u64;
        let found = cached_of(file.as_fd(), &runs, Ask::best()).unwrap().unwrap().cached;
        assert_eq!(found, expected, "{there:?}");
        // Four, if nothing else went or came; in memory alone (tmpfs) nothing goes.
        assert!(expected < 12 || there.iter().all(|there| *there), "{there:?}");
    }

    /// Pages of a file that are cached.
    fn resident(file: &std::fs::File, pages: usize) -> Vec<bool> {
        let mut out = vec![0_u8; pages];
        let size = pages * rustix::param::page_size();
        // SAFETY: a mapping of its own, of which nothing is read; `out` has a byte for each of its pages.
        unsafe {
            let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let at = libc::mmap(std::ptr::null_mut(), size, prot, flags, file.as_raw_fd(), 0);
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mincore(at, size, out.as_mut_ptr()), 0);
            libc::munmap(at, size);
        }
        out.iter().map(|byte| byte & 1 == 1).collect()
    }
}
