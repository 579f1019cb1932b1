//! What counts, where not everything does: the kernel programs decide it where it happens (`bpf/wanted.h`).

use std::path::PathBuf;

use crate::sample::Comm;

/// A cgroup, and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Inode number of its directory.
    pub id: u64,
    /// Path in the hierarchy: if it goes and another of this path is made, that one counts.
    pub path: String,
}

/// Some of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// The one that is at this path now.
    One {
        /// The path; on overlayfs that of the layer which has the data.
        path: PathBuf,
        /// On btrfs, its path inside the file system: tells subvolumes apart where the kernel does not.
        name: Option<String>,
    },
    /// The block device at this path.
    Device(PathBuf),
    /// Those of the file system that has this path.
    System(PathBuf),
}

/// What counts. All that is set must be so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// One process.
    pub pid: Option<u32>,
    /// Processes of one name.
    pub comm: Option<Comm>,
    /// One cgroup.
    pub cgroup: Option<Group>,
    /// Some files.
    pub files: Option<Files>,
}

impl Only {
    /// Whether only some threads count.
    #[must_use]
    pub const fn threads(&self) -> bool {
        self.pid.is_some() || self.comm.is_some() || self.cgroup.is_some()
    }
}
