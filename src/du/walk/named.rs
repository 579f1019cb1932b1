//! Files that are named, perhaps beside directories that have them as well.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::PoisonError;

use rustix::fs::Statx;

use super::Walk;
use crate::du::open::dev;
use crate::du::residency::Ask;

impl Walk<'_> {
    /// The file of a layer that a named file of an overlay mount is.
    pub(in crate::du) fn real(&self, path: &Path, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        self.layers.real(path, stat)
    }

    /// How files of this file system are asked about.
    pub(in crate::du) fn ask_on(&self, file: BorrowedFd<'_>, stat: &Statx) -> Ask {
        let dev = dev(stat);
        let known = |asks: &HashMap<u64, Ask>| asks.get(&dev).copied();
        if let Some(ask) = known(&self.asks.read().unwrap_or_else(PoisonError::into_inner)) {
            return ask;
        }
        let ask = self.options.ask.on(file);
        self.asks.write().unwrap_or_else(PoisonError::into_inner).insert(dev, ask);
        ask
    }

    /// Which file a name stands for.
    pub(in crate::du) fn seen(&self, path: &Path) -> Option<(u64, u64)> {
        Some(self.layers.seen(path)?.inode)
    }

    /// Whether this is the first time that a named file is seen.
    pub(in crate::du) fn first(&self, (dev, inode): (u64, u64)) -> bool {
        self.links.first(dev, inode)
    }
}
