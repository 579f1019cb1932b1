//! What the cache has now of a row: the pages of a file, the memory of a cgroup. Asked while the details of the row are open,
//! by threads of their own: a server that is gone holds up nothing but the one that asked it.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use rustix::fs::CWD;

use crate::cgroup::Memory;
use crate::pivot::By;
use crate::pivot::Who;
use crate::residency::Ask;
use crate::residency::Run;
use crate::residency::Unknown;
use crate::residency::kinds;
use crate::residency::words;

/// How long the kernel is asked about one file.
const PATIENCE: Duration = Duration::from_millis(300);
/// Parts of a file that are told apart.
pub const CELLS: u64 = 192;

/// What the cache has now.
#[derive(Debug, Clone)]
pub enum Now {
    /// Of a file, or why that is not known.
    File(Result<Pages, String>),
    /// Of a cgroup, and when it was asked.
    Cgroup(Result<(Memory, Instant), String>),
}

/// What is cached of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// Its size in bytes.
    pub size: u64,
    /// Pages that this size covers.
    pub pages: u64,
    /// Cached.
    pub cached: u64,
    /// To be written; `None` where mincore(2) answered.
    pub dirty: Option<u64>,
    /// Evicted, and still remembered.
    pub evicted: Option<u64>,
    /// Runs of pages side by side.
    pub runs: usize,
    /// Pages of each part but the last.
    pub part: u64,
    /// The pages cached of each part.
    pub parts: Vec<u64>,
}

/// Whether there is anything to ask of such a row.
#[must_use]
pub fn suits(by: By, who: &Who) -> bool {
    match by {
        By::File => file(who).is_some(),
        By::Cgroup => who.cgroup.is_some(),
        _ => false,
    }
}

/// A file that has a name by which it can be opened.
fn file(who: &Who) -> Option<&Path> {
    let bytes = who.path.as_ref()?.bytes();
    let named = bytes.starts_with(b"/") && !bytes.ends_with(b" (deleted)");
    named.then(|| Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// Asks. It may take its time.
#[must_use]
pub fn look(by: By, who: &Who) -> Option<Now> {
    match by {
        By::File => {
            let until = Instant::now() + PATIENCE;
            let stop = || Instant::now() > until;
            Some(Now::File(pages(file(who)?, who.inode, &stop)))
        }
        By::Cgroup => {
            let path = who.cgroup.as_ref()?.raw();
            let read = Memory::read(&path).map_err(String::from);
            Some(Now::Cgroup(read.map(|memory| (memory, Instant::now()))))
        }
        _ => None,
    }
}

fn pages(path: &Path, inode: Option<u64>, stop: &dyn Fn() -> bool) -> Result<Pages, String> {
    let failed = |e: std::io::Error| words(&e);
    let is = |meta: &std::fs::Metadata| meta.is_file() && inode.is_none_or(|n| n == meta.ino());
    const OTHER: &str = "another file has its name by now";
    // Nothing else is opened: a pipe or a device would notice.
    if !is(&std::fs::metadata(path).map_err(failed)?) {
        return Err(OTHER.into());
    }
    kinds::bears_opening(CWD, path).map_err(|why| why.to_string())?;
    let open = |flags| File::options().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    // Only the owner may ask for O_NOATIME.
    let file = open(libc::O_NOATIME).or_else(|_| open(0)).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !is(&meta) {
        return Err(OTHER.into());
    }
    let late = |why: Unknown| match why {
        Unknown::Interrupted => format!("no answer within {} ms", PATIENCE.as_millis()),
        why => why.to_string(),
    };
    // What can be known at all depends on the file: pages that mincore(2) cannot look at in time are not looked at.
    let ask = Ask::best().at_most(1 << 24).of_file(file.as_fd());
    let all = ask.until(file.as_fd(), meta.len(), stop).map_err(late)?;
    let runs = ask.first_ranges(file.as_fd(), meta.len(), usize::MAX, stop).map_err(late)?;
    let part = all.pages.div_ceil(CELLS).max(1);
    Ok(Pages {
        size: all.size,
        pages: all.pages,
        cached: all.cached,
        dirty: all.more.map(|m| m.dirty),
        evicted: all.more.map(|m| m.evicted),
        runs: runs.len(),
        part,
        parts: parts(&runs, all.pages, part),
    })
}

/// How many pages of each part are cached.
fn parts(runs: &[Run], pages: u64, part: u64) -> Vec<u64> {
    let mut out = vec![0; usize::try_from(pages.div_ceil(part)).unwrap_or(0)];
    for run in runs {
        let (mut at, end) = (run.start, run.end().min(pages));
        while at < end {
            let next = ((at / part + 1) * part).min(end);
            if let Some(cell) = usize::try_from(at / part).ok().and_then(|i| out.get_mut(i)) {
                *cell += next - at;
            }
            at = next;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use super::*;

    #[test]
    fn runs_fill_parts() {
        let run = |start, pages| Run { start, pages, dirty: None };
        assert_eq!(
            parts(&[run(0, 1), run(3, 6), run(10, 9)], 12, 4),
            [2, 4, 3],
            "past the end there is nothing"
        );
        assert!(parts(&[], 0, 1).is_empty());
    }

    #[test]
    fn a_file_that_was_just_written_is_cached() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![1; 100 * rustix::param::page_size()]).unwrap();
        let inode = file.as_file().metadata().unwrap().ino();
        let who = |path: &str, inode| Who { path: Some(path.into()), inode: Some(inode), ..Who::default() };
        let path = file.path().to_str().unwrap();
        let Some(Now::File(Ok(pages))) = look(By::File, &who(path, inode)) else { panic!() };
        assert_eq!((pages.pages, pages.cached, pages.runs, pages.part), (100, 100, 1, 1));
        assert!(pages.parts.iter().all(|n| *n == 1) && pages.parts.len() == 100);
        // Another one by that name is another file.
        let Some(Now::File(Err(why))) = look(By::File, &who(path, inode + 1)) else { panic!() };
        assert!(why.contains("another file"), "{why}");
        for path in ["inode 7", "/gone (deleted)"] {
            assert!(!suits(By::File, &who(path, 7)) && look(By::File, &who(path, 7)).is_none());
        }
        assert!(matches!(look(By::File, &who("/dev/null", 1)), Some(Now::File(Err(_)))), "not opened");
    }
}
