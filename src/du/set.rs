//! A set of cached pages in a file: written by `--save`, read by `--restore` and `--diff`.
//!
//! JSON lines: a head, then a line for each file with the ranges that were cached, then an end with their number.

mod diff;
mod reading;
mod saving;

use std::path::PathBuf;

pub use diff::Diff;
pub use reading::read;
pub use saving::save;

use super::ranges::Run;

/// What the head is called.
const KIND: &str = "cachedu-set";
/// The version that this program writes, and the only one that it reads.
const VERSION: u64 = 2;
/// What the last line is called: a set without it was cut off.
const LAST: &str = "end";

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path when it was written.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// What was cached, in order.
    pub runs: Vec<Run>,
}

/// A set of cached pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Bytes in a page.
    pub page_size: u64,
    /// Its files.
    pub files: Vec<File>,
}

/// Bytes that the head may have.
const HEAD: u64 = 1 << 16;
/// Bytes that a line may have: a file with 300 000 runs.
const LONGEST: u64 = 4 << 20;
/// Bytes that a set may take in memory: 140 000 files with short names and a run each.
const LARGEST: usize = 36 << 20;

/// What a file of a set takes in memory, while lists grow.
fn room(path: usize, runs: usize) -> usize {
    3 * size_of::<File>() + path + runs * size_of::<Run>() + 32
}

#[cfg(test)]
mod tests;
