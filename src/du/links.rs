//! Files with more than one name are counted once.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use roaring::RoaringTreemap;

/// Inodes by device. Those of a tree lie close together, so a million of them take some megabytes at most.
#[derive(Debug, Default)]
pub struct Inodes(HashMap<u64, RoaringTreemap>);

impl Inodes {
    /// Puts one in; whether it was not there.
    pub fn insert(&mut self, (dev, inode): (u64, u64)) -> bool {
        self.0.entry(dev).or_default().insert(inode)
    }

    /// Whether one is there.
    #[must_use]
    pub fn contains(&self, (dev, inode): (u64, u64)) -> bool {
        self.0.get(&dev).is_some_and(|inodes| inodes.contains(inode))
    }
}

/// Parts of the set, each with a lock of its own.
const SHARDS: usize = 64;
/// Inodes in a row that share a part: a directory's files often lie side by side, so a thread stays in one part.
const GROUP: u64 = 1 << 16;

/// Inodes that were seen.
#[derive(Debug)]
pub struct Links {
    shards: Vec<Mutex<Inodes>>,
}

impl Default for Links {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Links {
    fn shard(&self, inode: u64) -> MutexGuard<'_, Inodes> {
        let shard = &self.shards[usize::try_from(inode / GROUP).unwrap_or(0) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the first time that the inode is seen.
    #[must_use]
    pub fn first(&self, dev: u64, inode: u64) -> bool {
        self.shard(inode).insert((dev, inode))
    }
}

impl From<Links> for Inodes {
    fn from(links: Links) -> Self {
        let mut all = Self::default();
        for shard in links.shards {
            for (dev, inodes) in shard.into_inner().unwrap_or_else(PoisonError::into_inner).0 {
                *all.0.entry(dev).or_default() |= inodes;
            }
        }
        all
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
        assert!(links.first(1, u64::MAX) && !links.first(1, u64::MAX));
    }
}
