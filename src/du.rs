//! `cachedu`: which files and directories hold the page cache, and in what pattern.
//!
//! [`residency`] and [`ranges`] answer for one open file and are cheap: one system call for the first, a few for each
//! run of cached pages for the second. Everything else here walks, adds up, shows and acts.

pub mod act;
pub mod cli;
pub mod exclude;
pub mod interrupt;
pub mod kinds;
pub mod links;
pub mod map;
pub mod open;
pub mod owners;
pub mod pattern;
pub mod problems;
pub mod progress;
pub mod ranges;
pub mod residency;
pub mod row;
pub mod run;
pub mod set;
pub mod sys;
pub mod totals;
pub mod tui;
pub mod view;
pub mod walk;

pub use ranges::Run;
pub use residency::Ask;
pub use residency::Method;
pub use residency::Residency;
pub use residency::Unknown;

use std::os::fd::AsFd;

/// What is cached of an open file, by the best method that this kernel has.
///
/// # Errors
/// Why it cannot be known; never a guess.
pub fn residency(file: impl AsFd) -> Result<Residency, Unknown> {
    Ask::best().residency(file.as_fd())
}

/// The runs of cached pages of an open file, in order.
///
/// # Errors
/// Why they cannot be known.
pub fn ranges(file: impl AsFd) -> Result<Vec<Run>, Unknown> {
    Ask::best().ranges(file.as_fd())
}
