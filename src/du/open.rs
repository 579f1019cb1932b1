//! Opening a file only to ask about it: nothing is read, waited for, followed or marked as accessed.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Flags of every open: no waiting for pipes and leases, no terminal taken over.
const QUIET: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

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
pub fn named(path: &CStr) -> rustix::io::Result<OwnedFd> {
    unmarked(rustix::fs::CWD, path, QUIET)
}

/// With O_NOATIME where that is allowed: to the owner and to root.
fn unmarked(dir: impl AsFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::openat(&dir, name, flags, Mode::empty()),
        other => other,
    }
}
