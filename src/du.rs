//! `cachedu`: which files and directories hold the page cache, and in what pattern.
//!
//! What is cached of one open file is answered by [`crate::residency`]. Everything else here walks, adds up, shows and
//! acts.

pub mod act;
pub mod exclude;
pub mod finding;
pub mod found;
pub mod interrupt;
pub mod layers;
pub mod links;
pub mod map;
mod meminfo;
pub mod open;
pub mod opening;
pub mod options;
pub mod paths;
pub mod pattern;
pub mod printing;
pub mod problems;
pub mod processes;
pub mod progress;
pub mod row;
pub mod run;
pub mod set;
pub mod stream;
pub mod totals;
pub mod tui;
pub mod view;
pub mod walk;
mod watch;

pub use crate::residency;
pub use crate::residency::Ask;
pub use crate::residency::Method;
pub use crate::residency::Residency;
pub use crate::residency::Run;
pub use crate::residency::Unknown;
pub use crate::residency::kinds;
pub use crate::residency::ranges;

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
