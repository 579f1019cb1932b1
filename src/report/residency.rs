//! How much of a file is in the cache, asked by `mincore(2)`, and how those pages lie.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::data::Pattern;
use super::data::Residency;

/// Bytes asked for at a time: a vector of 64 Ki pages.
const STEP: u64 = 256 << 20;

/// Counts runs of absent and present pages as they come.
#[derive(Default)]
struct Runs {
    pages: u64,
    cached: u64,
    last: Option<(bool, u64)>,
    lengths: Vec<(bool, u64)>,
}

/// Runs that are remembered: enough to see a pattern.
const REMEMBERED: usize = 4096;

impl Runs {
    fn page(&mut self, present: bool) {
        self.pages += 1;
        self.cached += u64::from(present);
        match &mut self.last {
            Some((kind, n)) if *kind == present => *n += 1,
            last => {
                if let (Some(run), true) = (last.take(), self.lengths.len() < REMEMBERED) {
                    self.lengths.push(run);
                }
                *last = Some((present, 1));
            }
        }
    }

    /// The pattern: nine runs in ten of each kind have the same length, and there are at least eight. The first run
    /// may be cut by the beginning of the file.
    fn pattern(&self) -> Option<Pattern> {
        let usual = |kind: bool| {
            let mut lengths: Vec<u64> =
                self.lengths.iter().skip(1).filter(|(k, _)| *k == kind).map(|(_, n)| *n).collect();
            lengths.sort_unstable();
            let middle = *lengths.get(lengths.len() / 2)?;
            let same = lengths.iter().filter(|n| **n == middle).count();
            (lengths.len() >= 8 && same * 10 >= lengths.len() * 9).then_some((middle, same))
        };
        let ((absent, a), (present, b)) = (usual(false)?, usual(true)?);
        Some(Pattern { absent, present, times: a.min(b) as u64 })
    }
}

/// Asks for a regular file. `None` for anything else: opening a device or a pipe could do something.
///
/// # Errors
/// When the file cannot be opened or asked for.
pub fn of(path: &Path) -> io::Result<Option<Residency>> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let file = File::options().read(true).custom_flags(libc::O_NOATIME | libc::O_NONBLOCK).open(path);
    // Only the owner may ask for O_NOATIME.
    let file = file.or_else(|_| File::open(path))?;
    let size = file.metadata()?.len();
    let page = rustix::param::page_size() as u64;
    let mut runs = Runs::default();
    let mut at = 0;
    while at < size {
        let length = STEP.min(size - at);
        chunk(&file, at, length, page, &mut runs)?;
        at += length;
    }
    Ok(Some(Residency { cached: runs.cached, pages: runs.pages, pattern: runs.pattern() }))
}

/// Whether a path and its inode are in the dentry cache, so that asking for the file brings nothing into any cache.
///
/// # Errors
/// `NotFound`, or where the kernel (before 5.12) does not tell.
pub fn is_name_cached(path: &Path) -> io::Result<bool> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let (mode, resolve) = (rustix::fs::Mode::empty(), rustix::fs::ResolveFlags::CACHED);
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, mode, resolve) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::AGAIN) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn chunk(file: &File, at: u64, length: u64, page: u64, runs: &mut Runs) -> io::Result<()> {
    let bytes = usize::try_from(length).map_err(io::Error::other)?;
    let mut vector = vec![0u8; usize::try_from(length.div_ceil(page)).map_err(io::Error::other)?];
    let offset = libc::off_t::try_from(at).map_err(io::Error::other)?;
    // SAFETY: a new mapping at a place of the kernel's choice, never touched; it is unmapped below with the same
    // length, and the vector has a byte for each of its pages.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset,
        );
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = libc::mincore(memory, bytes, vector.as_mut_ptr());
        let error = io::Error::last_os_error();
        libc::munmap(memory, bytes);
        if result != 0 {
            return Err(error);
        }
    }
    vector.iter().for_each(|b| runs.page(b & 1 == 1));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_name_in_use_is_cached() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_name_cached(file.path()).unwrap());
        let gone = is_name_cached(Path::new("/no/such/file"));
        // Names that do not exist are cached or not, too.
        assert!(matches!(&gone, Ok(false)) || gone.unwrap_err().kind() == io::ErrorKind::NotFound);
    }

    fn runs(pages: impl Iterator<Item = bool>) -> Runs {
        let mut runs = Runs::default();
        pages.for_each(|p| runs.page(p));
        runs
    }

    #[test]
    fn every_14th_page() {
        let runs = runs((0..1400).map(|n| n % 14 == 13));
        assert_eq!((runs.pages, runs.cached), (1400, 100));
        assert_eq!(runs.pattern().map(|p| (p.absent, p.present)), Some((13, 1)));
    }

    #[test]
    fn no_pattern_where_there_is_none() {
        assert_eq!(runs(std::iter::repeat_n(true, 1000)).pattern(), None);
        assert_eq!(
            runs((0u64..4000).map(|n| n.wrapping_mul(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0))
                .pattern(),
            None
        );
        assert_eq!(runs((0..60).map(|n| n % 14 == 13)).pattern(), None, "four times is not enough");
    }

    #[test]
    fn a_file_just_written_is_cached_and_a_directory_is_not_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![1; 10_000]).unwrap();
        let r = of(&path).unwrap().unwrap();
        assert_eq!((r.cached, r.pages), (3, 3));
        assert_eq!(of(dir.path()).unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(of(&path).unwrap().unwrap().pages, 0);
    }
}
