//! The two system calls that tell what is cached: cachestat(2), Linux 6.5, and mincore(2). Neither reads the file.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Number of cachestat(2), the same on all architectures that Rust knows.
const CACHESTAT: libc::c_long = 451;

/// What cachestat(2) answers, in pages (`struct cachestat`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// Pages in the cache.
    pub cache: u64,
    /// Of these, pages to be written.
    pub dirty: u64,
    /// Of these, pages being written now.
    pub writeback: u64,
    /// Pages that were in the cache and left a shadow there; for tmpfs, pages in swap.
    pub evicted: u64,
    /// Of these, pages whose return would count as a refault of the working set.
    pub recently_evicted: u64,
}

impl Stat {
    /// The two together.
    pub fn add(&mut self, other: &Self) {
        self.cache += other.cache;
        self.dirty += other.dirty;
        self.writeback += other.writeback;
        self.evicted += other.evicted;
        self.recently_evicted += other.recently_evicted;
    }
}

/// `struct cachestat_range`, in bytes.
#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

/// Asks cachestat(2) about `len` bytes of a file; 0 means up to its end.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EPERM` for who may not write the file (since 6.14 and in its stable series),
/// `EOPNOTSUPP` on hugetlbfs.
pub fn cachestat(fd: BorrowedFd<'_>, off: u64, len: u64) -> io::Result<Stat> {
    let range = Range { off, len };
    let mut stat = Stat::default();
    // SAFETY: both structures are as the kernel defines them and live through the call.
    let ret = unsafe {
        libc::syscall(CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut stat, 0 as libc::c_uint)
    };
    if ret == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
}

/// A mapping of a file that is never touched: mincore(2) wants an address.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<c_void>,
    len: usize,
    page: usize,
}

impl Mapping {
    /// Maps `pages` pages from the page `first` on; they may lie past the end of the file.
    ///
    /// Without huge pages: where they are on for all, the kernel's khugepaged looks at a new mapping at once, reads what the
    /// file lacks of a huge page (seen on 7.2), and what was to be looked at is another cache. A process could have
    /// none at all (`PR_SET_THP_DISABLE`), but a command that is run would have none either.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(fd: BorrowedFd<'_>, first: u64, pages: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let too_big = || io::Error::from_raw_os_error(libc::EOVERFLOW);
        let offset =
            first.checked_mul(page as u64).and_then(|o| i64::try_from(o).ok()).ok_or_else(too_big)?;
        let len = pages.checked_mul(page).ok_or_else(too_big)?;
        // Since 6.7 what is said to be a stack has no huge pages from the start on. Nothing else comes of it.
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_STACK;
        let prot = libc::PROT_READ;
        // SAFETY: a new mapping at an address of the kernel's choice, that no reference is ever made into.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd.as_raw_fd(), offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or_else(too_big)?;
        let mapping = Self { start, len, page };
        // As soon as may be on kernels before that. A kernel without huge pages refuses it, and makes none.
        let _ = mapping.advise(0, pages, libc::MADV_NOHUGEPAGE);
        Ok(mapping)
    }

    /// Fills `out` with a byte for each page from the `first` of the mapping on; bit 0 says "in the cache".
    ///
    /// # Errors
    /// Those of mincore(2).
    pub fn mincore(&self, first: usize, out: &mut [u8]) -> io::Result<()> {
        let (at, len) = (first * self.page, out.len() * self.page);
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        // SAFETY: the range lies inside the mapping, and `out` has a byte for each of its pages.
        let ret = unsafe { libc::mincore(self.start.as_ptr().wrapping_byte_add(at), len, out.as_mut_ptr()) };
        if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Brings so many pages from the `first` of the mapping on into the cache (Linux 5.14), and waits until they are there.
    ///
    /// # Errors
    /// `EINVAL` on older kernels, `EFAULT` past the end of the file and for what cannot be read.
    pub fn populate(&self, first: usize, pages: usize) -> io::Result<()> {
        self.advise(first, pages, libc::MADV_POPULATE_READ)
    }

    /// From now on nothing but what is asked for is brought into the cache.
    ///
    /// # Errors
    /// Those of madvise(2).
    pub fn without_read_ahead(&self) -> io::Result<()> {
        self.advise(0, self.len / self.page, libc::MADV_RANDOM)
    }

    fn advise(&self, first: usize, pages: usize, advice: libc::c_int) -> io::Result<()> {
        let (at, len) = (first.saturating_mul(self.page), pages.saturating_mul(self.page));
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        // SAFETY: the range lies inside the mapping, whose contents nobody refers to, and no kind of advice that is given changes them.
        let ret = unsafe { libc::madvise(self.start.as_ptr().wrapping_byte_add(at), len, advice) };
        if ret == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length and goes with this value.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsFd as _;

    use super::*;

    /// The flags of the mapping that begins there, as /proc tells them.
    fn flags(start: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|l| !l.starts_with(&format!("{start:x}-")));
        lines.find_map(|l| l.strip_prefix("VmFlags:")).map(|l| format!("{l} "))
    }

    #[test]
    fn a_mapping_has_no_huge_pages() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        let mapping = Mapping::new(file.as_fd(), 0, 1024).unwrap();
        let flags = flags(mapping.start.as_ptr() as usize).unwrap();
        // A kernel that knows none has no such flag.
        let known = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(flags.contains(" nh "), known, "{flags}");
        // And a process that is started from here may have them.
        // SAFETY: asks for a number.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }, 0);
    }
}
