//! A file of a recording: made where nobody else can have put one, held while it is written, and gone from the page cache as
//! soon as it is on the disk, but for the page that the next tick continues.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::Advice;
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::file;
use super::numbers::signed;
use crate::text::outfile;

/// What a ring's files, and those of moments, end in.
pub(super) const ENDING: &str = ".record";

/// One file that grows.
pub(super) struct Growing {
    file: File,
    /// Bytes so far.
    pub length: u64,
    /// What of it is no longer in the page cache.
    gone: u64,
}

impl Growing {
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = disk::room(bytes.len());
        if let Err(e) = room.and_then(|()| self.file.write_all_at(bytes, self.length)) {
            // Half a frame would be damage in the midst of what is written later.
            let _ = self.file.set_len(self.length);
            return Err(e);
        }
        self.length += bytes.len() as u64;
        self.forget();
        Ok(())
    }

    /// Whether it is still there under that name.
    pub fn is_at(&self, path: &Path) -> bool {
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let ours = self.file.metadata().map(id);
        fs::symlink_metadata(path).map(id).is_ok_and(|there| ours.is_ok_and(|ours| ours == there))
    }

    /// Brings whole pages to the disk and takes them out of the cache. Where that cannot be done, nothing is lost.
    fn forget(&mut self) {
        let page = rustix::param::page_size() as u64;
        let end = self.length / page * page;
        if let Some(length) = std::num::NonZeroU64::new(end.saturating_sub(self.gone)) {
            let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER;
            let (from, bytes) = (signed(self.gone), signed(length.get()));
            // SAFETY: takes numbers and a descriptor of ours.
            unsafe { libc::sync_file_range(self.file.as_raw_fd(), from, bytes, flags) };
            let _ = rustix::fs::fadvise(&self.file, self.gone, Some(length), Advice::DontNeed);
            self.gone = end;
        }
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        let _ = self.file.sync_data();
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
    }
}

/// Whether somebody is writing a recording: who does holds its file. Who only asks holds nobody else off. Where it cannot be asked
/// (too many files are open), somebody may.
pub(super) fn is_held(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK),
        // A link, nothing, and what is not ours to read are nothing that is recorded by one of us.
        Err(e) => !matches!(e, Errno::LOOP | Errno::NOENT | Errno::ACCESS),
    }
}

/// A file that nobody else made, under a name that nobody looks for.
pub(super) struct Prepared {
    file: File,
    beside: PathBuf,
    length: u64,
}

impl Prepared {
    pub fn new(path: &Path) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(beside);
        let _ = fs::remove_file(&beside);
        // Names of files and command lines are nobody else's business.
        let file = File::from(rustix::fs::open(&beside, flags, Mode::RUSR | Mode::WUSR)?);
        // From here on it goes when this does.
        let new = Self { file, beside, length: file::beginning().len() as u64 };
        // Held as long as it is written. A file system that knows no locks has nobody held off.
        let _ = rustix::fs::flock(&new.file, FlockOperation::NonBlockingLockExclusive);
        if let Some((uid, gid)) = outfile::sudo() {
            // A monitor that has dropped what this needs keeps the file.
            let _ = std::os::unix::fs::fchown(&new.file, Some(uid), Some(gid));
        }
        disk::room(file::beginning().len())?;
        new.file.write_all_at(&file::beginning(), 0)?;
        Ok(new)
    }

    /// In the place of what was there.
    fn put(self, path: &Path) -> io::Result<Growing> {
        fs::rename(&self.beside, path)?;
        Ok(Growing { file: self.file.try_clone()?, length: self.length, gone: 0 })
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // It is not there any more where it was put somewhere.
        let _ = fs::remove_file(&self.beside);
    }
}

/// A file that nobody else made, in the place of what was there.
pub(super) fn create(path: &Path) -> io::Result<Growing> {
    Prepared::new(path)?.put(path)
}

/// A disk that is full whenever a test says so.
#[cfg(not(test))]
mod disk {
    pub(super) const fn room(_: usize) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod disk {
    use std::cell::RefCell;
    use std::fs;
    use std::io;
    use std::path::PathBuf;

    thread_local! {
        /// A directory of this thread, and the bytes that have room in it.
        pub static SIZE: RefCell<Option<(PathBuf, u64)>> = const { RefCell::new(None) };
    }

    pub(super) fn room(more: usize) -> io::Result<()> {
        SIZE.with_borrow(|size| {
            let Some((directory, size)) = size else { return Ok(()) };
            let all = fs::read_dir(directory)?.filter_map(|entry| entry.ok()?.metadata().ok());
            let used: u64 = all.map(|meta| meta.len()).sum();
            if used + more as u64 > *size { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }
}
