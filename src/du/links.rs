//! Files with more than one name are counted once.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// Parts of the set, each with a lock of its own.
const SHARDS: usize = 64;
/// Inodes in a row that share a part: a directory's files often lie side by side, so a thread stays in one part.
const GROUP: u64 = 256;

/// Inodes that were seen. Only those with several names are put in, so it stays small.
#[derive(Debug)]
pub struct Links {
    shards: Vec<Mutex<HashSet<(u64, u64)>>>,
}

impl Default for Links {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Links {
    /// Whether the inode was seen before.
    #[must_use]
    pub fn again(&self, dev: u64, inode: u64) -> bool {
        self.shard(inode).contains(&(dev, inode))
    }

    fn shard(&self, inode: u64) -> MutexGuard<'_, HashSet<(u64, u64)>> {
        let shard = &self.shards[usize::try_from(inode / GROUP).unwrap_or(0) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the first time that the inode is seen.
    #[must_use]
    pub fn first(&self, dev: u64, inode: u64) -> bool {
        self.shard(inode).insert((dev, inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_inode_is_first_once() {
        let links = Links::default();
        assert!(links.first(1, 5) && links.first(1, 5 + GROUP) && links.first(2, 5));
        assert!(!links.first(1, 5) && !links.first(2, 5));
    }
}
