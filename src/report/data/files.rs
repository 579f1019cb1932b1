//! What a command did to one file, and how much of it was cached.

use serde::Deserialize;
use serde::Serialize;

use crate::text::foreign::Foreign;

/// How much of a file was in the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Pages in the cache.
    pub cached: u64,
    /// Pages of the file.
    pub pages: u64,
    /// How they lie, where they form a pattern: `13 absent, 1 present`.
    #[serde(default)]
    pub pattern: Option<Pattern>,
}

/// Runs of absent and present pages that repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Pages in a row that are not in the cache.
    pub absent: u64,
    /// Pages in a row that are.
    pub present: u64,
    /// How often the two follow each other.
    pub times: u64,
}

/// What the command did to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRow {
    /// Its path, where that is known.
    pub path: Option<Foreign>,
    /// `MAJOR:MINOR` of its file system.
    pub dev: String,
    /// Inode number.
    pub inode: u64,
    /// Type of the file system.
    pub fs: Option<String>,
    /// Of what overlayfs copied while the command ran: the file of the layer below.
    pub copied_from: Option<Foreign>,
    /// Size when the command had ended, bytes.
    pub size: Option<u64>,
    /// Pages: `read.hits`.
    pub hits: u64,
    /// Pages: `read.readahead_hits`.
    pub readahead_hits: u64,
    /// Pages: `read.misses`.
    pub misses: u64,
    /// Bytes read through the cache.
    pub read_bytes: u64,
    /// Pages read ahead.
    pub readahead_pages: u64,
    /// Major faults.
    pub fault_misses: u64,
    /// Minor faults.
    pub fault_hits: u64,
    /// Pages: `write.hits`.
    pub write_hits: Option<u64>,
    /// Pages: `write.misses`.
    pub write_misses: Option<u64>,
    /// Pages dirtied.
    pub dirtied: u64,
    /// Bytes read past the cache.
    pub direct_read_bytes: Option<u64>,
    /// Bytes written past the cache.
    pub direct_write_bytes: Option<u64>,
    /// What was cached before the run; known only of files that could be named before.
    pub before: Option<Residency>,
    /// What was cached after it.
    pub after: Option<Residency>,
    /// Whether it is known that nobody has changed it since just before the run, in content or length.
    #[serde(skip)]
    pub unchanged: bool,
    /// Why that, or what was cached before, is not known, although it was asked for.
    pub residency_unknown: Option<String>,
    /// Read-ahead setting of the file system, KiB, and where it stands.
    pub read_ahead_kb: Option<u64>,
    /// The file in sysfs that sets it.
    pub read_ahead_path: Option<String>,
}

impl FileRow {
    /// Accesses by reads, pages.
    #[must_use]
    pub const fn accesses(&self) -> u64 {
        self.hits + self.readahead_hits + self.misses
    }

    /// Pages that writes covered.
    #[must_use]
    pub fn writes(&self) -> Option<u64> {
        self.write_hits.zip(self.write_misses).map(|(h, m)| h + m)
    }

    /// Bytes past the cache, both ways.
    #[must_use]
    pub fn direct(&self) -> Option<u64> {
        self.direct_read_bytes.zip(self.direct_write_bytes).map(|(r, w)| r + w)
    }

    /// What files are ranked by: pages touched in any way, those past the cache among them. A page that is written and
    /// dirtied is one.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let written = self.dirtied.max(self.writes().unwrap_or(0));
        let direct = self.direct().unwrap_or(0).div_ceil(4096);
        self.accesses() + self.readahead_pages + self.fault_misses + self.fault_hits + written + direct
    }
}
