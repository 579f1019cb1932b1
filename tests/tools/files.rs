//! Files, and what is known of them in the cache.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::path::PathBuf;

/// A process id as the system calls take it.
pub fn signed(pid: u32) -> i32 {
    pid.try_into().unwrap()
}

pub fn unsigned(pid: i32) -> u32 {
    pid.try_into().unwrap()
}

pub fn page_size() -> u64 {
    // SAFETY: sysconf takes no pointer.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

/// A file on disk of so many pages, the last one partial, and nothing of it in the cache.
pub fn cold_file(path: &Path, pages: u64) -> PathBuf {
    let size = usize::try_from((pages - 1) * page_size() + 123).unwrap();
    let mut file = File::options().create_new(true).read(true).write(true).open(path).unwrap();
    file.write_all(&vec![0x5a; size]).unwrap();
    drop_cache(&file);
    path.to_owned()
}

pub fn drop_cache(file: &File) {
    file.sync_all().unwrap();
    advise(file, libc::POSIX_FADV_DONTNEED);
    let left = resident(file);
    assert_eq!(left, 0, "this file system keeps what it is told to drop: put the target directory on a disk");
}

pub fn advise(file: &File, advice: i32) {
    // SAFETY: posix_fadvise takes no pointer.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) }, 0);
}

/// Pages of the file, from its size.
pub fn pages_of(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len().div_ceil(page_size())
}

/// Pages of the file that are in the cache and up to date, by mincore.
pub fn resident(file: &File) -> u64 {
    let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let mut bits = vec![0u8; size.div_ceil(usize::try_from(page_size()).unwrap())];
    // SAFETY: a fresh mapping that is never touched; `bits` has a byte for each of its pages.
    unsafe {
        let base =
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(base, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        assert_eq!(libc::mincore(base, size, bits.as_mut_ptr()), 0, "{}", io::Error::last_os_error());
        libc::munmap(base, size);
    }
    bits.iter().filter(|b| **b & 1 == 1).count() as u64
}

/// Reads the whole file, and holds it in the cache until the process ends: mlock(2) keeps it there whatever reclaim
/// there is.
pub fn hold_warm(path: &Path) {
    let file = File::open(path).unwrap();
    fs::read(path).unwrap();
    let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
    // SAFETY: a fresh mapping, which nobody looks at and which stays.
    unsafe {
        let base =
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(base, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        assert_eq!(libc::mlock(base, size), 0, "{}", io::Error::last_os_error());
    }
}

/// Whether a page of the file is in the cache and up to date, by mincore.
pub fn is_resident(file: &File, page: u64) -> bool {
    let size = usize::try_from(page_size()).unwrap();
    let mut bit = 0u8;
    // SAFETY: a fresh mapping of one page that is never touched; `bit` is its byte.
    unsafe {
        let at = i64::try_from(page * page_size()).unwrap();
        let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let base = libc::mmap(std::ptr::null_mut(), size, prot, flags, file.as_raw_fd(), at);
        assert_ne!(base, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        assert_eq!(libc::mincore(base, size, &raw mut bit), 0, "{}", io::Error::last_os_error());
        libc::munmap(base, size);
    }
    bit & 1 == 1
}
