//! Asking the kernel what is cached of a file.

use std::io;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use rustix::fs::MemfdFlags;

use super::answer::Method;
use super::answer::More;
use super::answer::Residency;
use super::kinds;
use super::size::size;
use super::sys;
use super::sys::Mapping;
use super::sys::Stat;
use super::unknown::Unknown;

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
        *BEST
            .get_or_init(|| Self::by(if works() == Some(true) { Method::Cachestat } else { Method::Mincore }))
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
        match kinds::kind(fd) {
            Some(kinds::OVERLAY) => Self { method: Method::Mincore, ..self },
            Some(kinds::HUGETLBFS) => Self { vain: Some(Unknown::HugeTlb), ..self },
            Some(kind) if kinds::pseudo(kind) => Self { vain: Some(Unknown::NoCache), ..self },
            _ => self,
        }
    }

    /// The same for files of a directory that are yet to be opened: on FUSE, that alone would change the answer.
    #[must_use]
    pub fn below(self, dir: BorrowedFd<'_>) -> Self {
        match kinds::kind(dir) {
            Some(kinds::FUSE) => Self { vain: Some(Unknown::Fuse), ..self },
            _ => self.on(dir),
        }
    }

    /// The same for one file, whose size was not asked for by [`size`]: a file with direct access is not cached, and
    /// some kernels (seen: 6.12 and 7.2) crash where cachestat(2) is asked about one that has been used.
    #[must_use]
    pub fn of_file(self, fd: BorrowedFd<'_>) -> Self {
        match size(fd) {
            Err(why @ Unknown::Dax) => Self { vain: Some(why), ..self },
            _ => self.on(fd),
        }
    }

    /// Why there is nothing to ask, where [`Ask::on`] or [`Ask::below`] has found that out.
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

    /// The same for a file whose size is known and whose file system was looked up with [`Ask::on`]: one system
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

/// Whether cachestat(2) answers of a file of our own, found out once; `None` where we can have none.
fn works() -> Option<bool> {
    static WORKS: OnceLock<Option<bool>> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let own = rustix::fs::memfd_create(c"cachedu", MemfdFlags::CLOEXEC).ok()?;
        Some(sys::cachestat(own.as_fd(), 0, 0).is_ok())
    })
}

/// cachestat(2) says `EPERM` for one reason only, once it is known to work at all.
pub(crate) fn refused(error: io::Error) -> Unknown {
    why(error, works)
}

fn why(error: io::Error, works: impl Fn() -> Option<bool>) -> Unknown {
    match error.raw_os_error() {
        Some(libc::EPERM) if works() == Some(false) => Unknown::Forbidden,
        Some(libc::EPERM) => Unknown::NotPermitted,
        Some(libc::EOPNOTSUPP) => Unknown::HugeTlb,
        _ => error.into(),
    }
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
        let mut beyond = [0_u8];
        if canary < WINDOW {
            // One mapping for both questions.
            let mapping = Mapping::new(fd, 0, to_usize(canary + 1))?;
            mapping.mincore(to_usize(canary), &mut beyond)?;
            if beyond[0] & 1 == 1 {
                return Err(Unknown::NotPermitted);
            }
            let mut vec = vec![0; to_usize(pages)];
            mapping.mincore(0, &mut vec)?;
            show(0, &vec);
            return Ok(());
        }
        Mapping::new(fd, canary, 1)?.mincore(0, &mut beyond)?;
        if beyond[0] & 1 == 1 {
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
mod tests;
