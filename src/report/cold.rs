//! Emptying caches, and the shell line before a run.

use std::fs;
use std::io;

/// Which caches are emptied before the first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Cold {
    /// Pages of files (drop_caches 1)
    Pagecache,
    /// Names and inodes (drop_caches 2)
    Slab,
    /// Both (drop_caches 3)
    All,
}

impl Cold {
    /// What is written to `/proc/sys/vm/drop_caches`.
    const fn number(self) -> &'static str {
        match self {
            Cold::Pagecache => "1",
            Cold::Slab => "2",
            Cold::All => "3",
        }
    }

    /// The name of the option's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cold::Pagecache => "pagecache",
            Cold::Slab => "slab",
            Cold::All => "all",
        }
    }

    /// What was emptied, in words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Cold::Pagecache => "the page cache",
            Cold::Slab => "the dentry and inode caches",
            Cold::All => "the page cache and the dentry and inode caches",
        }
    }

    /// Empties them, on the whole machine. What is dirty is written first: dirty pages are never dropped.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn empty(self) -> io::Result<()> {
        // SAFETY: takes and touches nothing.
        unsafe { libc::sync() };
        fs::write("/proc/sys/vm/drop_caches", self.number())
    }
}
