//! What is known of one file.

/// The system call that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// cachestat(2), Linux 6.5 and newer: counts without looking at pages that are not there.
    Cachestat,
    /// mincore(2): looks at each page of the file; knows nothing of dirty and evicted pages.
    Mincore,
}

impl Method {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Method::Cachestat => "cachestat",
            Method::Mincore => "mincore",
        }
    }
}

/// What only cachestat(2) tells, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct More {
    /// Cached pages that have yet to be written.
    pub dirty: u64,
    /// Cached pages that are being written.
    pub writeback: u64,
    /// Pages that reclaim took and whose shadow is still remembered; for tmpfs, pages in swap.
    pub evicted: u64,
    /// Of these, those whose return would be a refault: evicted so lately that they belong to the working set.
    pub recently_evicted: u64,
}

/// What is cached of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Size of the file in bytes.
    pub size: u64,
    /// Pages that this size covers. Pages past the end, which some kernels keep, are not counted anywhere.
    pub pages: u64,
    /// Pages of these in the cache, pages still being read from the device included by cachestat(2), but not by
    /// mincore(2).
    pub cached: u64,
    /// What only cachestat(2) knows.
    pub more: Option<More>,
    /// Who answered.
    pub method: Method,
}
