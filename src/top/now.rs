//! What the cache has now of a row: the pages of a file, the memory of a cgroup. Asked while the details of the row are open,
//! by threads of their own: a server that is gone holds up nothing but the one that asked it.

use std::fs::File;
use std::fs::Metadata;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use rustix::fs::CWD;

use crate::cgroup::Memory;
use crate::files::Dev;
use crate::files::block_device;
use crate::pivot::By;
use crate::pivot::Who;
use crate::residency::Ask;
use crate::residency::Run;
use crate::residency::Unknown;
use crate::residency::kinds;
use crate::residency::words;
use crate::text::foreign::Foreign;

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
            Some(Now::File(pages(file(who)?, who, &stop)))
        }
        By::Cgroup => {
            let path = who.cgroup.as_ref()?.raw();
            let read = Memory::read(&path).map_err(String::from);
            Some(Now::Cgroup(read.map(|memory| (memory, Instant::now()))))
        }
        _ => None,
    }
}

/// What the path must be to be asked: the file of the row, or its block device, whose inode in /dev is another one than that
/// which has its pages.
fn is(meta: &Metadata, who: &Who) -> Result<(), String> {
    let block = meta.file_type().is_block_device();
    let same = match block {
        true => {
            let dev = Dev { major: libc::major(meta.rdev()), minor: libc::minor(meta.rdev()) };
            block_device(dev).map(Foreign::from) == who.device
        }
        false => who.inode.is_none_or(|n| n == meta.ino()),
    };
    match same {
        false => Err("another file has its name by now".into()),
        true if block || meta.is_file() => Ok(()),
        true => Err("it is neither a regular file nor a block device".into()),
    }
}

fn pages(path: &Path, who: &Who, stop: &dyn Fn() -> bool) -> Result<Pages, String> {
    let failed = |e: std::io::Error| words(&e);
    // Nothing else is opened: a pipe or a terminal would notice.
    is(&std::fs::metadata(path).map_err(failed)?, who)?;
    kinds::bears_opening(CWD, path).map_err(|why| why.to_string())?;
    let open = |flags| File::options().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    // Only the owner may ask for O_NOATIME.
    let file = open(libc::O_NOATIME).or_else(|_| open(0)).map_err(failed)?;
    is(&file.metadata().map_err(failed)?, who)?;
    let late = |why: Unknown| match why {
        Unknown::Interrupted => format!("no answer within {} ms", PATIENCE.as_millis()),
        why => why.to_string(),
    };
    // What can be known at all depends on the file: pages that mincore(2) cannot look at in time are not looked at.
    let ask = Ask::best().at_most(1 << 24).of_file(file.as_fd());
    // Of a block device, stat(2) says 0.
    let size = crate::residency::size(file.as_fd()).map_err(late)?;
    let all = ask.until(file.as_fd(), size, stop).map_err(late)?;
    let runs = ask.first_ranges(file.as_fd(), size, usize::MAX, stop).map_err(late)?;
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
        let null = std::fs::metadata("/dev/null").unwrap().ino();
        let why = |inode| match look(By::File, &who("/dev/null", inode)) {
            Some(Now::File(Err(why))) => why,
            other => panic!("{other:?}"),
        };
        assert!(
            why(null).contains("neither a regular file nor a block device"),
            "it is not opened: {}",
            why(null)
        );
        assert!(why(null + 1).contains("another file"), "{}", why(null + 1));
    }

    #[test]
    fn a_block_device_is_asked_and_told_by_its_number() {
        let block = |e: &std::fs::DirEntry| e.file_type().is_ok_and(|t| t.is_block_device());
        let devices: Vec<_> = std::fs::read_dir("/dev").unwrap().flatten().filter(block).collect();
        let mut asked = 0;
        for device in &devices {
            let path = device.path().to_str().unwrap().to_owned();
            let rdev = device.metadata().unwrap().rdev();
            let named = block_device(Dev { major: libc::major(rdev), minor: libc::minor(rdev) });
            if named.as_ref() != Some(&path) {
                continue;
            }
            let who = |device: &str| Who {
                path: Some(path.as_str().into()),
                device: Some(device.into()),
                // That of its pages, which is none in /dev.
                inode: Some(u64::MAX),
                ..Who::default()
            };
            asked += 1;
            let meta = device.metadata().unwrap();
            assert_eq!(is(&meta, &who(&path)), Ok(()));
            assert!(is(&meta, &who("/dev/another")).is_err_and(|why| why.contains("another file")));
            // Who may not open it, or finds nothing in it, is told that.
            if let Some(Now::File(Err(why))) = look(By::File, &who(&path)) {
                assert!(!why.contains("another file"), "{path}: {why}");
            }
        }
        // Only where there is none at all, as in some containers, nothing is shown.
        assert!(asked > 0 || devices.is_empty(), "none of {devices:?} has its name");
    }
}
