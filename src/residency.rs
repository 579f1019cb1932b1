//! What is cached of one file, for every program of the package: cachestat(2) where there is one, else mincore(2), and
//! never its false "all of it".
//!
//! A question costs what is cached, not what the file could hold: any user can make a file of 15 TiB with nothing in it.
//! cachestat(2) passes over what is not there; it is asked in steps, since a call cannot be interrupted. mincore(2) looks
//! at each page, and so answers up to [`LOOKED_AT`] pages or whatever the caller allows ([`Ask::at_most`]); of larger
//! files it is said that they are not known. What is a hole in the file is no help: it is cached once it has been read.

pub mod kinds;
pub mod ranges;
pub mod sys;

pub use ranges::Run;

use std::io;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::MemfdFlags;
use rustix::fs::SeekFrom;
use rustix::fs::Statx;
use rustix::fs::StatxAttributes;
use rustix::fs::StatxFlags;

use sys::Mapping;
use sys::Stat;

/// Pages looked at through one mapping: 1 GiB of the file on x86, for which mincore(2) fills 256 KiB.
pub const WINDOW: u64 = 1 << 18;

/// Pages that mincore(2) looks at in one file and no more: 1 TiB on x86, which takes a minute.
pub const LOOKED_AT: u64 = 1 << 28;

/// Pages that one cachestat(2) is asked about, if that makes no more than [`STEPS`] of a file. All of them cached, one by
/// one, are some 50 ms.
const STEP: u64 = 1 << 20;
const STEPS: u64 = 1 << 12;

/// Pages of the largest folio that may reach past the end of a file.
const HUGE: u64 = 512;

/// The system call that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// cachestat(2), Linux 6.5 and newer: counts without looking at pages that are not there.
    Cachestat,
    /// mincore(2): looks at each page of the file; knows nothing of dirty and evicted pages.
    Mincore,
}

impl Method {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Method::Cachestat => "cachestat",
            Method::Mincore => "mincore",
        }
    }
}

/// What only cachestat(2) tells, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct More {
    /// Cached pages that have yet to be written.
    pub dirty: u64,
    /// Cached pages that are being written.
    pub writeback: u64,
    /// Pages that reclaim took and whose shadow is still remembered; for tmpfs, pages in swap.
    pub evicted: u64,
    /// Of these, those whose return would be a refault: evicted so lately that they belong to the working set.
    pub recently_evicted: u64,
}

/// What is cached of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Size of the file in bytes.
    pub size: u64,
    /// Pages that this size covers. Pages past the end, which some kernels keep, are not counted anywhere.
    pub pages: u64,
    /// Pages of these in the cache, pages still being read from the device included by cachestat(2), but not by
    /// mincore(2).
    pub cached: u64,
    /// What only cachestat(2) knows.
    pub more: Option<More>,
    /// Who answered.
    pub method: Method,
}

/// Why nothing can be said about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unknown {
    /// Not allowed: the kernel tells this only to who may write the file, and claims "all resident" to others.
    #[error("no write access: the kernel tells only the owner and those who may write")]
    NotPermitted,
    /// The file may not even be opened.
    #[error("permission denied")]
    NotReadable,
    /// hugetlbfs.
    #[error("huge pages of hugetlbfs are no page cache")]
    HugeTlb,
    /// Direct access to persistent memory.
    #[error("direct access (DAX): the file is not cached")]
    Dax,
    /// The file went away between being listed and being opened.
    #[error("no such file")]
    Vanished,
    /// A process has it mapped and not open, it has no name that we can use, and map_files is closed to us.
    #[error("mapped, and only root can open it")]
    OnlyMapped,
    /// /proc, /sys and their like.
    #[error("no page cache: what the file says is made when it is read")]
    NoCache,
    /// Symbolic links that lead to each other.
    #[error("symbolic links that lead nowhere, or too many of them")]
    Loop,
    /// Not a regular file nor a block device.
    #[error("{0}")]
    NotAFile(&'static str),
    /// More pages than may be looked at one by one, and no cachestat(2).
    #[error("too large to be asked page by page, and cachestat(2) cannot answer here")]
    TooLarge,
    /// Somebody wanted no more of it.
    #[error("interrupted")]
    Interrupted,
    /// It took longer than may be waited for.
    #[error("no answer in time")]
    Late,
    /// Anything else that the kernel said.
    #[error("{}", words(&io::Error::from_raw_os_error(*.0)))]
    Failed(i32),
}

/// What the system says of an error, without its number.
#[must_use]
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_lowercase()
}

impl Unknown {
    /// A word for machines.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Unknown::NotPermitted => "no_write_access",
            Unknown::NotReadable => "permission_denied",
            Unknown::HugeTlb => "hugetlbfs",
            Unknown::Dax => "dax",
            Unknown::Vanished => "vanished",
            Unknown::OnlyMapped => "only_mapped",
            Unknown::NoCache => "no_page_cache",
            Unknown::Loop => "symlink_loop",
            Unknown::NotAFile(_) => "not_a_file",
            Unknown::TooLarge => "too_large",
            Unknown::Interrupted => "interrupted",
            Unknown::Late => "late",
            Unknown::Failed(_) => "error",
        }
    }

    /// Whether only what is cached is kept from us: the file can be opened, read and evicted all the same.
    #[must_use]
    pub const fn untold(self) -> bool {
        matches!(self, Unknown::NotPermitted | Unknown::TooLarge)
    }
}

impl From<io::Error> for Unknown {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().unwrap_or(libc::EIO) {
            libc::EACCES => Unknown::NotReadable,
            libc::ENOENT | libc::ESTALE => Unknown::Vanished,
            libc::ELOOP => Unknown::Loop,
            code => Unknown::Failed(code),
        }
    }
}

impl From<rustix::io::Errno> for Unknown {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// How to ask the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    method: Method,
    /// Why there is nothing to ask on this file system.
    vain: Option<Unknown>,
    /// Pages that mincore(2) may look at.
    most: u64,
}

/// Whether to go on, asked between two steps of a question; what is known so far is not shown.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Nobody stops it.
pub(crate) const NEVER: Stop<'static> = &|| false;

impl Ask {
    /// The best method here, found out once: cachestat(2) may be missing, or forbidden by a container's seccomp
    /// filter, which looks like the `EPERM` of a file that is not ours. A file of our own tells the two apart.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Ask> = OnceLock::new();
        *BEST.get_or_init(|| {
            let works = rustix::fs::memfd_create(c"cachedu", MemfdFlags::CLOEXEC)
                .is_ok_and(|fd| sys::cachestat(fd.as_fd(), 0, 0).is_ok());
            Self::by(if works { Method::Cachestat } else { Method::Mincore })
        })
    }

    /// By this method only.
    #[must_use]
    pub const fn by(method: Method) -> Self {
        Self { method, vain: None, most: LOOKED_AT }
    }

    /// The same, but mincore(2) is to look at no more pages than these.
    #[must_use]
    pub const fn at_most(self, pages: u64) -> Self {
        Self { most: pages, ..self }
    }

    /// The method that is tried first.
    #[must_use]
    pub const fn method(self) -> Method {
        self.method
    }

    /// How to ask about what lies on the file system of an open file or directory.
    ///
    /// A file of overlayfs has a mapping of its own that is always empty, and cachestat(2) looks into that one
    /// (seen on 6.18): it says 0 of whatever is cached. A memory mapping is one of the file below.
    /// Where files have no page cache, nothing is asked: mincore(2) would tell of huge pages as if they were some, and
    /// cachestat(2) says 0 of /sys.
    #[must_use]
    pub fn on(self, fd: BorrowedFd<'_>) -> Self {
        match kinds::of(fd) {
            Some(kinds::OVERLAY) => Self { method: Method::Mincore, ..self },
            Some(kinds::HUGETLBFS) => Self { vain: Some(Unknown::HugeTlb), ..self },
            Some(kind) if kinds::pseudo(kind) => Self { vain: Some(Unknown::NoCache), ..self },
            _ => self,
        }
    }

    /// Why there is nothing to ask, where [`Ask::on`] has found that out.
    #[must_use]
    pub const fn vain(self) -> Option<Unknown> {
        self.vain
    }

    /// What is cached of an open regular file or block device.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn residency(self, fd: BorrowedFd<'_>) -> Result<Residency, Unknown> {
        let size = size(fd)?;
        self.on(fd).of_size(fd, size)
    }

    /// The same for a file whose size is known and whose file system was asked for with [`Ask::on`]: one system
    /// call with cachestat(2), unless the file is huge.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn of_size(self, fd: BorrowedFd<'_>, size: u64) -> Result<Residency, Unknown> {
        self.until(fd, size, NEVER)
    }

    /// The same, to be stopped between any two steps.
    ///
    /// # Errors
    /// Why it cannot be known.
    pub fn until(self, fd: BorrowedFd<'_>, size: u64, stop: Stop<'_>) -> Result<Residency, Unknown> {
        let page = rustix::param::page_size() as u64;
        let pages = size.div_ceil(page);
        if let Some(why) = self.vain {
            return Err(why);
        }
        let method = self.method;
        let (cached, more) = match method {
            // A length of 0 would mean "to the end of everything", pages past the end of the file included.
            _ if pages == 0 => (0, (method == Method::Cachestat).then(More::default)),
            Method::Cachestat => {
                let mut sum = Stat::default();
                for (first, count) in steps(pages) {
                    go_on(stop)?;
                    sum.add(&sys::cachestat(fd, first * page, count.saturating_mul(page)).map_err(refused)?);
                }
                let Stat { cache, dirty, writeback, evicted, recently_evicted } = sum;
                (cache, Some(More { dirty, writeback, evicted, recently_evicted }))
            }
            Method::Mincore => {
                let mut cached = 0;
                self.windows(fd, pages, stop, |_, vec| {
                    cached += vec.iter().map(|b| u64::from(b & 1)).sum::<u64>();
                    true
                })?;
                (cached, None)
            }
        };
        Ok(Residency { size, pages, cached, more, method })
    }
}

/// The ranges of pages that cachestat(2) is asked about, one after the other. Who knows how much is cached of a range has
/// asked already: so they are as large as may be, if all of memory were in them.
pub(crate) fn steps(pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let step = STEP.max(pages.div_ceil(STEPS).next_power_of_two());
    (0..pages.div_ceil(step)).map(move |i| (i * step, step.min(pages - i * step)))
}

pub(crate) fn go_on(stop: Stop<'_>) -> Result<(), Unknown> {
    if stop() { Err(Unknown::Interrupted) } else { Ok(()) }
}

/// cachestat(2) says `EPERM` for one reason only, once it is known to work at all.
pub(crate) fn refused(error: io::Error) -> Unknown {
    match error.raw_os_error() {
        Some(libc::EPERM) => Unknown::NotPermitted,
        Some(libc::EOPNOTSUPP) => Unknown::HugeTlb,
        _ => error.into(),
    }
}

/// The size of an open file in bytes, and whether it is one that the page cache holds.
///
/// # Errors
/// For what is neither a regular file nor a block device, and for files that are not cached by nature.
pub fn size(fd: BorrowedFd<'_>) -> Result<u64, Unknown> {
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    match regular(&stat)? {
        Some(size) => Ok(size),
        None => Ok(rustix::fs::seek(fd, SeekFrom::End(0))?),
    }
}

/// The size of a regular file; `None` for a block device, which has to be opened to be asked.
///
/// # Errors
/// For everything else, and for files that bypass the page cache.
pub fn regular(stat: &Statx) -> Result<Option<u64>, Unknown> {
    let what = match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile if stat.stx_attributes.contains(StatxAttributes::DAX) => {
            return Err(Unknown::Dax);
        }
        FileType::RegularFile => return Ok(Some(stat.stx_size)),
        FileType::BlockDevice => return Ok(None),
        FileType::Directory => "it is a directory",
        FileType::Symlink => "it is a symbolic link",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::CharacterDevice => "it is a character device",
        FileType::Unknown => "it is of an unknown type",
    };
    Err(Unknown::NotAFile(what))
}

impl Ask {
    /// Shows the answers of mincore(2) window by window: the number of the first page, and a byte for each page. What is
    /// shown says whether to go on.
    ///
    /// To who may not write a file, the kernel says that everything is resident, pages past the end of the file included,
    /// where there can be none: so these are asked first.
    ///
    /// # Errors
    /// [`Unknown::NotPermitted`] where the kernel would lie, [`Unknown::TooLarge`] where it would take too long.
    pub(crate) fn windows(
        self,
        fd: BorrowedFd<'_>,
        pages: u64,
        stop: Stop<'_>,
        mut show: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), Unknown> {
        if pages > self.most {
            return Err(Unknown::TooLarge);
        }
        let canary = pages.next_multiple_of(HUGE) + HUGE;
        let mut told = [0_u8];
        if canary < WINDOW {
            // One mapping for both questions.
            let mapping = Mapping::new(fd, 0, to_usize(canary + 1))?;
            mapping.mincore(to_usize(canary), &mut told)?;
            if told[0] & 1 == 1 {
                return Err(Unknown::NotPermitted);
            }
            let mut vec = vec![0; to_usize(pages)];
            mapping.mincore(0, &mut vec)?;
            show(0, &vec);
            return Ok(());
        }
        Mapping::new(fd, canary, 1)?.mincore(0, &mut told)?;
        if told[0] & 1 == 1 {
            return Err(Unknown::NotPermitted);
        }
        let mut vec = vec![0; to_usize(WINDOW)];
        let mut first = 0;
        while first < pages {
            go_on(stop)?;
            let vec = &mut vec[..to_usize(WINDOW.min(pages - first))];
            Mapping::new(fd, first, vec.len())?.mincore(0, vec)?;
            if !show(first, vec) {
                break;
            }
            first += vec.len() as u64;
        }
        Ok(())
    }
}

/// Numbers here are bounded by [`WINDOW`].
fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn page() -> u64 {
        rustix::param::page_size() as u64
    }

    #[test]
    fn a_new_file_is_cached_where_it_was_written_and_nowhere_else() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1000 * page()).unwrap();
        file.write_all_at(b"x", 700 * page()).unwrap();
        file.write_all_at(&vec![1; 3 * page() as usize], 10 * page()).unwrap();
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let r = ask.residency(file.as_fd()).unwrap();
            assert_eq!((r.size, r.pages, r.cached), (1000 * page(), 1000, 4), "{ask:?}");
            assert_eq!(r.more.is_some(), ask.method() == Method::Cachestat);
        }
    }

    #[test]
    fn nothing_is_cached_of_nothing() {
        let file = tempfile::tempfile().unwrap();
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let r = ask.residency(file.as_fd()).unwrap();
            assert_eq!((r.size, r.pages, r.cached), (0, 0, 0));
        }
    }

    #[test]
    fn what_is_not_a_file_is_no_empty_file() {
        let dir = File::open("/").unwrap();
        assert_eq!(Ask::best().residency(dir.as_fd()), Err(Unknown::NotAFile("it is a directory")));
        let null = File::open("/dev/null").unwrap();
        assert!(matches!(Ask::best().residency(null.as_fd()), Err(Unknown::NotAFile(_))));
    }

    /// 15 TiB, which any user can make: what is cached of it is known at once, or that it is not known.
    #[test]
    fn a_file_of_15_tib_costs_what_is_cached_of_it() {
        let file = tempfile::tempfile().unwrap();
        let pages = (15 << 40) / page();
        if file.set_len(pages * page()).is_err() {
            // Not on ext4 with small blocks.
            return;
        }
        for at in [0, 1, pages / 2, pages - 1] {
            file.write_all_at(b"x", at * page()).unwrap();
        }
        let start = std::time::Instant::now();
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let (told, runs) = (ask.residency(file.as_fd()), ask.ranges(file.as_fd()));
            if ask.method() == Method::Mincore {
                assert_eq!((told, runs), (Err(Unknown::TooLarge), Err(Unknown::TooLarge)));
                continue;
            }
            assert_eq!(told.map(|r| (r.pages, r.cached)), Ok((pages, 4)));
            let runs: Vec<_> = runs.unwrap().iter().map(|r| (r.start, r.pages)).collect();
            assert_eq!(runs, [(0, 2), (pages / 2, 1), (pages - 1, 1)]);
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
    }

    #[test]
    fn steps_cover_a_file_once() {
        for pages in [1, STEP, STEP + 1, 3 * STEP - 1, (15 << 40) / 4096, (1 << 51) - 1, 1 << 51] {
            let mut end = 0;
            let mut n = 0;
            for (first, count) in steps(pages) {
                assert!(first == end && count > 0, "{pages}");
                (end, n) = (first + count, n + 1);
            }
            assert!(end == pages && n <= STEPS, "{pages}: {n}");
        }
    }

    #[test]
    fn a_question_ends_when_it_is_told_to() {
        let file = tempfile::tempfile().unwrap();
        let size = 4 * WINDOW.max(STEP) * page();
        file.set_len(size).unwrap();
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let asked = std::cell::Cell::new(0);
            let stop = || asked.replace(asked.get() + 1) == 2;
            assert_eq!(ask.until(file.as_fd(), size, &stop), Err(Unknown::Interrupted));
            assert_eq!(asked.get(), 3);
        }
    }

    #[test]
    fn a_file_of_more_than_one_window() {
        let file = tempfile::tempfile().unwrap();
        let pages = WINDOW * 2 + 7;
        file.set_len(pages * page() - 5).unwrap();
        file.write_all_at(b"x", pages * page() - 6).unwrap();
        file.write_all_at(b"x", WINDOW * page()).unwrap();
        for ask in [Ask::best(), Ask::by(Method::Mincore)] {
            let r = ask.residency(file.as_fd()).unwrap();
            assert_eq!((r.pages, r.cached), (pages, 2), "{ask:?}");
        }
    }
}
