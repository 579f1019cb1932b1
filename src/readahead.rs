//! What another setting of read-ahead would have read: the kernel's algorithm, run again over the requests that a command
//! made (`cachestat --try`).
//!
//! [`Simulation`] takes requests in their order and has the pages that the kernel would have brought in, as
//! `mm/readahead.c` decides it: the first window and its growth, markers, random reads, streams that are known by the pages
//! that they left, requests longer than a window, large folios. It begins with nothing in the cache, and nothing leaves it.
//! Pure but for [`keeper`], which changes the setting and puts it back.

#[cfg(test)]
pub(crate) mod fixtures;
pub mod keeper;
mod pages;
mod simulation;
mod sums;
mod tree;
mod window;

pub use simulation::Simulation;
pub use sums::Sums;
pub use sums::Window;
pub(crate) use window::next_size;

use crate::files::Dev;

/// Bytes of a page, as a power of two: of the architectures that the kernel programs know.
const PAGE_SHIFT: u32 = 12;

/// A read of a file through the page cache, as it is asked for, or that it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open file: read-ahead has its state there.
    pub file: u64,
    /// Device of the file system.
    pub dev: Dev,
    /// The file.
    pub inode: u64,
    /// The run that it belongs to.
    pub run: u32,
    /// Where it begins, bytes.
    pub pos: u64,
    /// Bytes that are asked for.
    pub count: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Where the read before it through the same open file ended; `None`: there was none.
    pub before: Option<u64>,
    /// The setting of the open file, pages.
    pub pages: u32,
    /// That of its device.
    pub device_pages: u32,
    /// The longest request to the device, pages.
    pub io_pages: u32,
    /// `POSIX_FADV_RANDOM` was said of it.
    pub random: bool,
    /// Made by sendfile: what a pipe holds is a request.
    pub splice: bool,
    /// Windows end where large folios do (6.16).
    pub aligned: bool,
    /// Order of the largest folio that the file may have.
    pub order: u32,
    /// No request: a read waits for these pages, which are on their way. `file` and what follows from it are not known.
    pub late: bool,
}

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// What it was.
    AsItWas,
    /// So many pages in `read_ahead_kb`, and twice as many where `POSIX_FADV_SEQUENTIAL` was said.
    Pages(u32),
    /// `POSIX_FADV_RANDOM`.
    Random,
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
}

impl Setting {
    /// Pages and randomness that a request finds under it.
    fn of(self, r: &Request) -> (u64, bool) {
        let (pages, device) = (u64::from(r.pages), u64::from(r.device_pages));
        match self {
            Setting::AsItWas => (pages, r.random),
            Setting::Pages(n) if pages == device => (n.into(), r.random),
            // Set by hand for this file, as advice does: POSIX_FADV_SEQUENTIAL takes twice the device's.
            Setting::Pages(n) if pages == 2 * device => (2 * u64::from(n), r.random),
            Setting::Pages(_) => (pages, r.random),
            Setting::Random => (pages, true),
            Setting::Sequential => (2 * device, false),
        }
    }
}

#[cfg(test)]
mod tests;
