//! Opening a file only to ask about it: nothing is read, waited for, followed or marked as accessed.

use std::ffi::CStr;
use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::Statx;
use rustix::io::Errno;

/// Flags of every open: no waiting for pipes and leases, no terminal taken over.
const QUIET: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The device of a file.
pub(super) fn dev(stat: &Statx) -> u64 {
    u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor)
}

/// What tells a file from all others.
pub(super) fn inode(stat: &Statx) -> (u64, u64) {
    (dev(stat), stat.stx_ino)
}

/// Opens a file below a directory, not following a symbolic link.
///
/// # Errors
/// Those of openat(2).
pub fn below(dir: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    unmarked(dir, name, QUIET | OFlags::NOFOLLOW)
}

/// Opens a directory below a directory, not following a symbolic link.
///
/// # Errors
/// Those of openat(2).
pub fn directory(dir: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    unmarked(dir, name, QUIET | OFlags::NOFOLLOW | OFlags::DIRECTORY)
}

/// Opens what a user names: a symbolic link stands for its target.
///
/// # Errors
/// Those of openat(2).
pub fn named(at: &Reached) -> rustix::io::Result<OwnedFd> {
    unmarked(at.dir(), &at.name, QUIET)
}

/// Bytes of a path that a system call takes, with the zero byte at the end.
const PATH_MAX: usize = 4096;

/// A path as system calls take it: trees may be deeper than that, so the end of it, and the directory where it begins.
#[derive(Debug)]
pub struct Reached {
    dir: Option<OwnedFd>,
    /// What is left of the path.
    pub name: CString,
}

impl Reached {
    /// Goes as far as it must.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn new(path: &Path) -> rustix::io::Result<Self> {
        let mut rest = path.as_os_str().as_bytes();
        let mut dir: Option<OwnedFd> = None;
        while rest.len() >= PATH_MAX {
            let slash = rest[..PATH_MAX].iter().rposition(|b| *b == b'/').filter(|at| *at > 0);
            let (above, below) = rest.split_at(slash.ok_or(Errno::NAMETOOLONG)?);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let from = dir.as_ref().map_or(rustix::fs::CWD, |d| d.as_fd());
            dir = Some(rustix::fs::openat(from, above, flags, Mode::empty())?);
            rest = &below[below.iter().position(|b| *b != b'/').unwrap_or(below.len())..];
        }
        let rest = if rest.is_empty() && dir.is_some() { b"." } else { rest };
        Ok(Self { dir, name: CString::new(rest).map_err(|_| Errno::INVAL)? })
    }

    /// Where the name begins.
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().map_or(rustix::fs::CWD, |d| d.as_fd())
    }
}

/// With O_NOATIME where that is allowed: to the owner and to root.
fn unmarked(dir: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::openat(&dir, name, flags, Mode::empty()),
        other => other,
    }
}
