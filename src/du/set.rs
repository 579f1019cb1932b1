//! A set of cached pages in a file: written by `--save`, read by `--restore` and `--diff`.
//!
//! JSON lines: a head, then a line for each file with the runs that were cached, then an end with their number. Runs are
//! written as holes and lengths in turn, from the beginning of the file on. In a file all of it is compressed as gzip does,
//! which has a checksum.

mod diff;
mod reading;
mod saving;
mod sorted;

use std::path::PathBuf;

pub use diff::show as diff;
pub use reading::Source;
pub use saving::save;

use rustix::fs::Statx;

use super::ranges::Run;

/// What the head is called.
const KIND: &str = "cachedu-set";
/// The version that this program writes, and the only one that it reads.
const VERSION: u64 = 3;
/// What the last line is called: a set without it was cut off.
const LAST: &str = "end";

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path when it was written.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its inode number.
    pub inode: u64,
    /// When its contents were changed last, in nanoseconds since 1970.
    pub mtime: i64,
    /// What was cached, in order.
    pub runs: Vec<Run>,
}

impl File {
    /// Whether this is the file that was saved: the same inode, whatever was written to it since, or one that was copied
    /// as it was. Numbers of inodes alone do not tell: a file that is replaced may get that of another.
    #[must_use]
    pub fn is(&self, stat: &Statx) -> bool {
        let same = stat.stx_size == self.size && mtime(stat) == self.mtime;
        same || stat.stx_ino == self.inode
    }
}

/// The time of the last change, in nanoseconds since 1970; the ends of what fits for times beyond.
fn mtime(stat: &Statx) -> i64 {
    stat.stx_mtime.tv_sec.saturating_mul(1_000_000_000).saturating_add(stat.stx_mtime.tv_nsec.into())
}

/// Bytes that the head may have.
const HEAD: u64 = 1 << 16;
/// Bytes that a line may have: a file with 500 000 runs, far from each other.
const LONGEST: u64 = 4 << 20;
/// Bytes that a set from a pipe may have.
const LARGEST: usize = 36 << 20;
/// Bytes of each of two sets that are in memory at once when they are compared: some 60 000 files.
pub const COMPARED: usize = 16 << 20;

/// What a file of a set takes in memory, while lists grow.
fn room(path: usize, runs: usize) -> usize {
    3 * size_of::<File>() + path + runs * size_of::<Run>() + 32
}

#[cfg(test)]
mod tests;
