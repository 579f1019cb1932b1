//! Directories for which no file could be opened any more: they wait, by their path, until those under way are closed.
//!
//! A walk holds a directory open for each level above it that still has some to come. Where few files may be open, deep
//! trees would take them all. So a directory does without before the last are taken: what is in one that is open can
//! always be asked about.

use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::AtFlags;
use rustix::fs::StatxFlags;
use rustix::io::Errno;

use super::Arrival;
use super::Walk;
use crate::du::open;

/// Open files of a thread besides directories: one that is asked about, its layers, the way to a deep one.
const BESIDES: u64 = 5;

/// The number of the first file descriptor that directories leave alone, with so many threads.
pub(super) fn most_open(threads: usize) -> i64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i64::try_from(limit.saturating_sub(BESIDES.saturating_mul(threads as u64))).unwrap_or(i64::MAX)
}

impl Walk<'_> {
    /// A directory, unless so many are open that it must wait.
    pub(super) fn spared(&self, opened: rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
        let fd = opened?;
        // The kernel gives the lowest number that is free.
        if i64::from(fd.as_raw_fd()) < self.most_open { Ok(fd) } else { Err(Errno::MFILE) }
    }

    /// Remembers a directory until others are closed.
    pub(super) fn wait(&self, arrival: Arrival) {
        self.later.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
    }

    /// Those that wait, now that nothing is open but the operand, and those that have to wait then, and so on.
    pub(super) fn walk_later(&self) {
        loop {
            let waiting = std::mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner));
            if waiting.is_empty() {
                return;
            }
            let before = self.arrived.load(Relaxed);
            rayon::scope(|scope| {
                for arrival in waiting {
                    scope.spawn(move |scope| {
                        let opened = by_path(&arrival);
                        self.arrive(scope, arrival, opened);
                    });
                }
            });
            if self.arrived.load(Relaxed) == before {
                // Others in this process, or in the system, have all there are.
                let left = std::mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner));
                left.into_iter().for_each(|arrival| self.unread(Arc::new(arrival.node), Errno::MFILE));
                return;
            }
        }
    }
}

/// Opens a directory that waited, if it is the one that was found.
fn by_path(arrival: &Arrival) -> rustix::io::Result<OwnedFd> {
    let at = open::Reached::new(&arrival.node.path())?;
    let fd = open::directory(at.dir(), &at.name)?;
    let stat = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    // What has its name by now is not what was found.
    if open::inode(&stat) == (arrival.node.dev, arrival.inode) { Ok(fd) } else { Err(Errno::NOENT) }
}
