//! What comes of a simulation.

use serde::Serialize;

/// Read-ahead windows of one size, and what became of their pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Pages brought in by such windows.
    pub pages: u64,
    /// Of these, pages that were read.
    pub used: u64,
    /// How often a read waited for such pages while they were on their way: noted, not simulated.
    pub late: u64,
}

/// Sizes of windows that are told apart: 2^i pages and more, up to twice that.
pub const SIZES: usize = 16;

/// What reads did to one file, or to all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Requests.
    pub requests: u64,
    /// Requests that found a page missing, and waited for it.
    pub waits: u64,
    /// Pages brought in from the device.
    pub fetched: u64,
    /// Of these, pages that were read.
    pub used: u64,
    /// The same by the size of the window that brought them in.
    pub windows: [Window; SIZES],
}

impl Sums {
    /// Pages brought in for nothing.
    #[must_use]
    pub const fn wasted(&self) -> u64 {
        self.fetched - self.used
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.waits += other.waits;
        self.fetched += other.fetched;
        self.used += other.used;
        for (into, from) in self.windows.iter_mut().zip(&other.windows) {
            into.pages += from.pages;
            into.used += from.used;
            into.late += from.late;
        }
    }
}
