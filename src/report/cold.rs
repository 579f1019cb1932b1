//! Emptying caches, and the shell line before a run.

use std::collections::HashSet;
use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use serde::Deserialize;
use serde::Serialize;

use super::units;
use crate::files::Mount;
use crate::options::OneOf;
use crate::procfs;
use crate::text::numbers::Unit;

/// Which caches are emptied before the first run, or before each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cold {
    /// Pages of files (drop_caches 1)
    Pagecache,
    /// Names and inodes (drop_caches 2)
    Slab,
    /// Both (drop_caches 3)
    All,
}

impl OneOf for Cold {
    const ALL: &'static [Self] = &[Cold::Pagecache, Cold::Slab, Cold::All];

    fn name(self) -> &'static str {
        match self {
            Cold::Pagecache => "pagecache",
            Cold::Slab => "slab",
            Cold::All => "all",
        }
    }
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

    /// What was emptied, in words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Cold::Pagecache => "the page cache",
            Cold::Slab => "the dentry and inode caches",
            Cold::All => "the page cache and the dentry and inode caches",
        }
    }

    /// Empties them, on the whole machine. What is dirty is written first: dirty pages are never dropped, nor are
    /// blocks that a journal has yet to put in their place.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn empty(self) -> io::Result<Left> {
        // SAFETY: takes and touches nothing.
        unsafe { libc::sync() };
        let journals_kept = checkpoint();
        // Not made anew where it is missing: that would empty nothing, and say that it had.
        let mut caches = File::options().write(true).open("/proc/sys/vm/drop_caches")?;
        io::Write::write_all(&mut caches, self.number().as_bytes())?;
        let text = fs::read_to_string("/proc/meminfo")?;
        let memory = crate::memory::parse(&text);
        let shared =
            text.lines().find_map(|l| l.strip_prefix("Shmem:")?.trim().strip_suffix(" kB")?.parse().ok());
        // Memory of tmpfs counts as cached there, and is never dropped.
        let file_bytes = memory.cached_bytes.saturating_sub(shared.unwrap_or(0_u64) * 1024);
        Ok(Left { file_bytes, buffers_bytes: memory.buffers_bytes, journals_kept })
    }
}

/// What was in the page cache after it was emptied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Of files (tmpfs apart), bytes: mapped by programs, or in use otherwise.
    pub file_bytes: u64,
    /// Of block devices, bytes: metadata that file systems hold on to.
    pub buffers_bytes: u64,
    /// Whether the kernel (before 5.14) could not be told to put into place what journals of ext4 hold.
    pub journals_kept: bool,
}

impl Left {
    /// In words.
    #[must_use]
    pub fn about(&self, unit: Unit) -> String {
        let journals = if self.journals_kept {
            "; what the journal of ext4 has yet to put in its place is among it, and this kernel (before 5.14) does \
             so only when it pleases"
        } else {
            ""
        };
        format!(
            "{} of files and {} of metadata stayed: in use{journals}",
            units::volume_of_bytes(self.file_bytes, unit),
            units::volume_of_bytes(self.buffers_bytes, unit),
        )
    }
}

/// Lets ext4 put in its place what its journals hold, of every file system: until then those blocks stay in the cache,
/// sync(2) or not. Freezing would do so as well, but a file system that stays frozen because we died is no price to pay.
/// True if one of them could not be told.
fn checkpoint() -> bool {
    /// `_IOW('f', 43, __u32)`, from 5.14.
    const EXT4_IOC_CHECKPOINT: u32 = 0x4004_662b;
    let mounts = procfs::mounts().unwrap_or_default();
    let ext4 = mounts.lines().filter_map(Mount::parse).filter(|m| m.kind == "ext4");
    let writable = ext4.filter(|m| !m.options.split(',').any(|o| o == "ro"));
    let mut done = HashSet::new();
    let mut kept = false;
    for mount in writable.filter(|m| done.insert(m.dev)) {
        let Ok(dir) = File::open(&mount.point) else { continue };
        let flags: u32 = 0;
        // SAFETY: the call reads the flags, which outlive it.
        let ret = unsafe { libc::ioctl(dir.as_raw_fd(), EXT4_IOC_CHECKPOINT as _, &raw const flags) };
        let error = io::Error::last_os_error().raw_os_error();
        kept |= ret != 0 && matches!(error, Some(libc::ENOTTY | libc::EOPNOTSUPP));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stayed_is_told_in_bytes_or_pages() {
        let left = Left { file_bytes: 3 * units::page(), buffers_bytes: 0, journals_kept: false };
        assert_eq!(left.about(Unit::Pages), "3 pages of files and 0 pages of metadata stayed: in use");
        let size = units::bytes(3 * units::page());
        assert_eq!(left.about(Unit::Bytes), format!("{size} of files and 0 B of metadata stayed: in use"));
        assert!(Left { journals_kept: true, ..left }.about(Unit::Bytes).contains("5.14"));
    }
}
