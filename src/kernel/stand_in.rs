//! A mapping for files that cannot be mapped.
//!
//! libbpf maps the kernel's BTF. Where the kernel refuses (before 6.16, which is when that file could be mapped), it reads
//! it instead, 5 MiB and more, and copies what it has read: for a moment both are there, just when most memory is in use.
//! The linker has libbpf call these functions instead of the C library's (`build.rs`), which do the same but for such a
//! file: there it is read into memory of its own, once. libbpf unmaps that as it would have done with the file.

use std::os::fd::BorrowedFd;

use libc::c_int;
use libc::c_void;

/// Of `statfs`: sysfs.
const SYSFS: u64 = 0x6265_6572;

/// Where no large offsets are told apart (musl).
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mmap(
    at: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mapping(at, length, (protection, flags), fd, offset) }
}

/// Where they are (glibc).
///
/// # Safety
/// As `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mmap64(
    at: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mapping(at, length, (protection, flags), fd, offset) }
}

/// # Safety
/// As `mmap`.
unsafe fn mapping(
    at: *mut c_void,
    length: usize,
    (protection, flags): (c_int, c_int),
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // Not by the C library's function: whoever links without the option has none of another name.
    // SAFETY: the caller's.
    let map = |protection: c_int, flags: c_int, fd: c_int, offset: i64| unsafe {
        libc::syscall(libc::SYS_mmap, at, length, protection, flags, fd, offset) as *mut c_void
    };
    let mapped = map(protection, flags, fd, offset);
    let private = at.is_null() && protection == libc::PROT_READ && flags == libc::MAP_PRIVATE && offset == 0;
    if mapped != libc::MAP_FAILED || fd < 0 || !private || errno() != libc::ENODEV {
        return mapped;
    }
    // SAFETY: the caller's descriptor, for as long as this lasts.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    if rustix::fs::fstatfs(file).map(|of| of.f_type as u64) != Ok(SYSFS) {
        set_errno(libc::ENODEV);
        return mapped;
    }
    let memory = map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
    if memory == libc::MAP_FAILED {
        return memory;
    }
    // SAFETY: mapped just now, with this length.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>(), length) };
    // SAFETY: the same memory, which is nobody else's yet.
    let whole = read(file, bytes) && unsafe { libc::mprotect(memory, length, protection) } == 0;
    if whole {
        return memory;
    }
    // SAFETY: nobody knows of it.
    unsafe { libc::munmap(memory, length) };
    set_errno(libc::ENODEV);
    libc::MAP_FAILED
}

/// Reads as much as there is room for; false: the file has less.
fn read(file: BorrowedFd<'_>, bytes: &mut [u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        match rustix::io::pread(file, &mut bytes[at..], at as u64) {
            Ok(0) => return false,
            Ok(n) => at += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn set_errno(number: c_int) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = number };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn map(path: &str, length: usize, protection: c_int, flags: c_int) -> Result<Vec<u8>, c_int> {
        let file = File::open(path).unwrap();
        // SAFETY: a new mapping at a place of the kernel's choice.
        let memory =
            unsafe { __wrap_mmap64(std::ptr::null_mut(), length, protection, flags, file.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(errno());
        }
        // SAFETY: mapped with this length, and unmapped once it is copied.
        unsafe {
            let bytes = std::slice::from_raw_parts(memory.cast::<u8>(), length).to_vec();
            assert_eq!(libc::munmap(memory, length), 0);
            Ok(bytes)
        }
    }

    #[test]
    fn a_file_of_sysfs_that_cannot_be_mapped_is_read() {
        let path = "/sys/kernel/notes";
        let notes = std::fs::read(path).unwrap();
        assert_eq!(map(path, notes.len(), libc::PROT_READ, libc::MAP_PRIVATE), Ok(notes.clone()));
        // Who would write to it, or share it, or asks for more than there is, is told the truth.
        let failed = Err(libc::ENODEV);
        assert_eq!(map(path, notes.len(), libc::PROT_READ, libc::MAP_SHARED), failed);
        assert_eq!(map(path, notes.len() + 1, libc::PROT_READ, libc::MAP_PRIVATE), failed);
        assert_eq!(map("/proc/self/status", 10, libc::PROT_READ, libc::MAP_PRIVATE), failed);
    }

    #[test]
    fn what_can_be_mapped_is_mapped() {
        let path = std::env::current_exe().unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(map(path, 4, libc::PROT_READ, libc::MAP_PRIVATE).unwrap(), b"\x7fELF");
    }
}
