//! Files as the kernel programs see them, and the mounts that give them a path.

mod layers;
mod mounts;
mod wanted;

pub use layers::Layers;
pub use mounts::Mount;
pub use mounts::Mounts;
pub use mounts::block_device;
pub use mounts::unescape;
pub use mounts::unescape_path;
pub use wanted::Wanted;
pub use wanted::mount_of;

use serde::Deserialize;
use serde::Serialize;

/// How far the name of a file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Named {
    /// From the root of its file system.
    Whole,
    /// Its end only: it lies too deep.
    End,
    /// No directory has it: `memfd:NAME`, shared memory.
    Loose,
    /// Not at all.
    Not,
    /// From the root of its file system, but for bytes that are no UTF-8, which stand there as U+FFFD: to be shown, not to be
    /// opened.
    Replaced,
}

/// One file, as long as its inode stays in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct File {
    /// Device number of its file system (`s_dev`), as in mountinfo.
    pub dev: Dev,
    /// Inode number.
    pub inode: u64,
    /// Generation of the inode: another one is another file.
    pub generation: u32,
    /// For a block device read as a file, the device.
    pub block: Option<Dev>,
    /// Its name in the file system when it was first used.
    pub name: String,
    /// What the name is.
    pub named: Named,
}

/// What makes a file the same one. On btrfs, subvolumes have inode numbers of their own each: there it takes the name, too.
pub type Key = (Dev, u64, u32, Option<Dev>);

impl File {
    /// Device, inode, generation, and the device that it is.
    #[must_use]
    pub const fn key(&self) -> Key {
        (self.dev, self.inode, self.generation, self.block)
    }
}

/// A device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Dev {
    /// Major number; 0 for file systems without a device.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Dev {
    /// From the kernel's own encoding (`s_dev`).
    #[must_use]
    pub const fn from_kernel(dev: u32) -> Self {
        Self { major: dev >> 20, minor: dev & 0xf_ffff }
    }

    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl std::fmt::Display for Dev {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}
