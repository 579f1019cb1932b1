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

/// Some processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// Their numbers; none: all of them.
    pub pids: Vec<u32>,
    /// When all of them were seen alive, on the kernel's monotonic clock, in nanoseconds: a process that has begun later and has
    /// one of these numbers is another.
    pub seen: u64,
}

/// What counts. All that is set must be so; of several of a kind any will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only {
    /// These processes.
    pub processes: Processes,
    /// Processes of these names.
    pub comms: Vec<Comm>,
    /// What is done in the name of these users.
    pub users: Vec<u32>,
    /// These cgroups.
    pub cgroups: Vec<Group>,
    /// Some files.
    pub files: Option<Files>,
}

impl Only {
    /// Whether only some threads count.
    #[must_use]
    pub fn threads(&self) -> bool {
        !(self.processes.pids.is_empty()
            && self.comms.is_empty()
            && self.users.is_empty()
            && self.cgroups.is_empty())
    }
}
