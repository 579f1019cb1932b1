//! Bringing pages into the cache without copying them.
//!
//! What is to be there as a whole is mapped and populated (Linux 5.14): the kernel reads ahead with folios as large as it
//! likes, and nothing is copied. Of 1 GiB that takes a fiftieth of the processor time of read(2). Read-ahead goes past the
//! ends of a range, though. So where exactly some pages are wanted, these are asked for in advance, several ranges at a
//! time, and then waited for through a mapping that has no read-ahead. Where a file cannot be mapped, or a page not be
//! read, read(2) does it, and says what the matter is.

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::Advice;
use rustix::io::Errno;

use crate::du::ranges::Run;
use crate::residency::Unknown;
use crate::residency::sys::Mapping;

/// Bytes that are copied at once, and up to which copying costs less than a mapping.
const COPIED: u64 = 128 << 10;
/// Pages that are mapped at once: 64 MiB on x86. More would be counted as memory of ours, and one would not see how far it
/// has come.
const POPULATED: u64 = 1 << 14;
/// Pages of one request in advance: 2 MiB on x86.
const REQUEST: u64 = 512;
/// Pages that are asked for and not yet waited for: 32 MiB on x86.
const AHEAD: u64 = 16 * REQUEST;
/// What a request counts for at least, so that there are not too many of a page each.
const LEAST: u64 = 16;

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Brings all bytes of a range into the cache, perhaps some around it. Counts the `bytes` that it has come through.
///
/// # Errors
/// Why it could not be done.
pub(super) fn whole(fd: BorrowedFd<'_>, from: u64, to: u64, bytes: &AtomicU64) -> Result<(), Unknown> {
    if to.saturating_sub(from) <= COPIED {
        return copied(fd, from, to, bytes);
    }
    let page = page_size();
    let (mut first, end) = (from / page, to.div_ceil(page));
    while first < end {
        let count = POPULATED.min(end - first);
        let populated = map(fd, first, count).is_some_and(|m| m.populate(0, to_usize(count)).is_ok());
        let (at, next) = ((first * page).max(from), ((first + count) * page).min(to));
        if populated {
            bytes.fetch_add(next - at, Relaxed);
        } else {
            copied(fd, at, next, bytes)?;
        }
        first += count;
    }
    Ok(())
}

/// Brings exactly these pages of a file of this size into the cache. Counts the `bytes` that it has come through.
///
/// # Errors
/// Why it could not be done.
pub(super) fn exactly(fd: BorrowedFd<'_>, runs: &[Run], size: u64, bytes: &AtomicU64) -> Result<(), Unknown> {
    let page = page_size();
    let pages = size.div_ceil(page);
    if matches!(runs, [all] if all.start == 0 && all.end() >= pages) {
        return whole(fd, 0, size, bytes);
    }
    // For read(2), if it comes to that.
    rustix::fs::fadvise(fd, 0, None::<NonZeroU64>, Advice::Random)?;
    let mut ahead = requests(runs, pages);
    let mut under_way = 0;
    let mut window: Option<Window> = None;
    for (start, count) in requests(runs, pages) {
        while under_way < AHEAD {
            let Some((start, count)) = ahead.next() else { break };
            under_way += count.max(LEAST);
            // Refused where it has no meaning: then all is read when it is waited for.
            let _ = rustix::fs::fadvise(fd, start * page, NonZeroU64::new(count * page), Advice::WillNeed);
        }
        under_way -= count.max(LEAST);
        if window.as_ref().is_none_or(|w| start < w.first || start + count > w.end) {
            let end = (start + POPULATED).min(pages);
            let mapping = map(fd, start, end - start).filter(|m| m.without_read_ahead().is_ok());
            window = Some(Window { first: start, end, mapping });
        }
        let (at, end) = (start * page, ((start + count) * page).min(size));
        let populated = window.as_ref().is_some_and(|w| w.populate(start, count));
        if populated {
            bytes.fetch_add(end - at, Relaxed);
        } else {
            copied(fd, at, end, bytes)?;
        }
    }
    Ok(())
}

/// A part of a file that is mapped, if it can be.
struct Window {
    first: u64,
    end: u64,
    mapping: Option<Mapping>,
}

impl Window {
    fn populate(&self, start: u64, count: u64) -> bool {
        let first = to_usize(start - self.first);
        self.mapping.as_ref().is_some_and(|m| m.populate(first, to_usize(count)).is_ok())
    }
}

/// The runs in parts that are asked for at once: first page and number, as far as the file goes.
fn requests(runs: &[Run], pages: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    runs.iter().filter(move |r| r.start < pages).flat_map(move |r| {
        let end = r.end().min(pages);
        (0..(end - r.start).div_ceil(REQUEST)).map(move |i| {
            let start = r.start + i * REQUEST;
            (start, REQUEST.min(end - start))
        })
    })
}

fn map(fd: BorrowedFd<'_>, first: u64, count: u64) -> Option<Mapping> {
    Mapping::new(fd, first, to_usize(count)).ok()
}

/// Numbers here are bounded by [`POPULATED`].
fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Reads a range with read(2).
fn copied(fd: BorrowedFd<'_>, from: u64, to: u64, bytes: &AtomicU64) -> Result<(), Unknown> {
    let mut buffer = vec![0; to_usize(COPIED.min(to.saturating_sub(from)))];
    let mut at = from;
    while at < to {
        let want = to_usize(COPIED.min(to - at));
        match rustix::io::pread(fd, &mut buffer[..want], at) {
            // It was truncated meanwhile.
            Ok(0) => break,
            Ok(n) => {
                at += n as u64;
                bytes.fetch_add(n as u64, Relaxed);
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::residency::Ask;

    fn run(start: u64, pages: u64) -> Run {
        Run { start, pages, dirty: None }
    }

    #[test]
    fn requests_are_the_runs_in_parts() {
        let found: Vec<_> = requests(&[run(3, 2), run(10, 1100), run(5000, 9)], 1105).collect();
        assert_eq!(found, [(3, 2), (10, 512), (522, 512), (1034, 71)]);
        assert_eq!(requests(&[run(7, u64::MAX - 8)], 0).count(), 0);
        // However large a set says that a run is, nothing is made of it beyond the file.
        assert_eq!(requests(&[run(0, u64::MAX)], 512).count(), 1);
    }

    /// A file beside the sources that is not in the cache.
    fn cold(pages: u64) -> (tempfile::NamedTempFile, File) {
        let mut made = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        made.write_all(&vec![7; to_usize(pages * page_size())]).unwrap();
        made.as_file().sync_all().unwrap();
        let file = made.reopen().unwrap();
        // Pages that somebody else holds just then stay: not for long.
        for _ in 0..200 {
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            if Ask::best().ranges(file.as_fd()).unwrap().is_empty() {
                return (made, file);
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("what is in {} cannot be dropped from the cache: is it a tmpfs?", env!("CARGO_MANIFEST_DIR"));
    }

    #[test]
    fn exactly_these_pages_and_no_more() {
        let (_made, file) = cold(5000);
        let wanted = [run(1, 1), run(40, 3), run(600, 1500), run(4990, 100)];
        let bytes = AtomicU64::new(0);
        exactly(file.as_fd(), &wanted, 5000 * page_size(), &bytes).unwrap();
        let found = Ask::best().ranges(file.as_fd()).unwrap();
        let found: Vec<_> = found.iter().map(|r| (r.start, r.pages)).collect();
        assert_eq!(bytes.load(Relaxed), (1 + 3 + 1500 + 10) * page_size());
        // Folios of several pages may bring neighbours; read-ahead would bring hundreds.
        let there = |page| found.iter().any(|(start, n)| (*start..start + n).contains(&page));
        assert!(wanted.iter().all(|r| (r.start..r.end().min(5000)).all(there)), "{found:?}");
        assert!(found.iter().map(|r| r.1).sum::<u64>() < 1514 + 64, "{found:?}");
    }

    #[test]
    fn a_whole_file_and_one_that_has_shrunk() {
        let (_made, file) = cold(3000);
        let bytes = AtomicU64::new(0);
        whole(file.as_fd(), 0, 3000 * page_size(), &bytes).unwrap();
        assert_eq!(bytes.load(Relaxed), 3000 * page_size());
        let all = Ask::best().residency(file.as_fd()).unwrap();
        assert_eq!(all.cached, 3000);
        // Longer ago it had more: populating is refused past the end, reading just ends there.
        whole(file.as_fd(), 0, 9000 * page_size(), &bytes).unwrap();
        exactly(file.as_fd(), &[run(0, 2), run(2990, 500)], 9000 * page_size(), &bytes).unwrap();
    }
}
