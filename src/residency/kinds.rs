//! Kinds of file systems on which the page cache is not what it is elsewhere, by their magic numbers.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::path::Arg;

use super::unknown::Unknown;

/// Files have a mapping of their own here that is always empty; their pages are those of the layer below.
pub const OVERLAY: u64 = 0x794c_7630;
/// Huge pages: none of the page cache.
pub const HUGETLBFS: u64 = 0x9584_58f6;
/// Files have no other place than the page cache (and swap) on these two.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
/// Each subvolume is a device to stat(2), and all of them are one to /proc.
pub const BTRFS: u64 = 0x9123_683e;

/// FUSE, and virtiofs. Unless the server says otherwise each time, a file's pages are dropped whenever it is opened.
pub const FUSE: u64 = 0x6573_5546;

/// File systems without pages of files: what they show is made when it is read.
const PSEUDO: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6165_676c, // pstorefs
    0xcafe_4a11, // bpf
    0x1cd1,      // devpts
    0x4249_4e4d, // binfmt_misc
    0xf97c_ff8c, // selinuxfs
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x0187,      // autofs
    0x6e73_6673, // nsfs
    0x1980_0202, // mqueue
    0x6573_5543, // fusectl
];

/// The magic number of the file system that holds an open file.
#[must_use]
pub fn kind(fd: BorrowedFd<'_>) -> Option<u64> {
    asked(fd).ok()
}

fn asked(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    match rustix::fs::fstatfs(fd) {
        Ok(told) => Ok((told.f_type & 0xffff_ffff).unsigned_abs()),
        // What has pages of files answers this itself, but for FUSE, whose servers need not.
        Err(Errno::NOSYS) => Ok(FUSE),
        Err(e) => Err(e),
    }
}

/// Whether what mounts call by this name is of that kind.
#[must_use]
pub fn is_fuse(name: &str) -> bool {
    name.starts_with("fuse") || name == "virtiofs"
}

/// Whether a file can be opened and still have the pages that it had: asked without opening it.
///
/// # Errors
/// [`Unknown::Fuse`] where that may empty its cache, and what openat(2) and fstatfs(2) say of the path: a server of FUSE may
/// fail to answer.
pub fn bears_opening(dir: impl AsFd, name: impl Arg) -> Result<(), Unknown> {
    let place = rustix::fs::openat(dir, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if asked(place.as_fd())? == FUSE { Err(Unknown::Fuse) } else { Ok(()) }
}

/// Whether files of such a file system have no other place than memory: nothing of them can be evicted.
#[must_use]
pub fn memory(kind: u64) -> bool {
    matches!(kind, TMPFS | RAMFS)
}

/// Whether files of such a file system have no pages.
#[must_use]
pub fn pseudo(kind: u64) -> bool {
    PSEUDO.contains(&kind)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn only_fuse_does_not_bear_opening() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(bears_opening(CWD, file.path()), Ok(()));
        assert_eq!(bears_opening(CWD, "/no/such/file"), Err(Unknown::Vanished));
    }

    #[test]
    fn names_of_mounts() {
        assert!(["fuse", "fuseblk", "fuse.sshfs", "virtiofs"].into_iter().all(is_fuse));
        assert!(!["ext4", "nfs4", "overlay", "9p"].into_iter().any(is_fuse));
    }
}
