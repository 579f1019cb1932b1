//! Files that are named, perhaps beside directories that have them as well.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;

use super::Walk;
use crate::du::open::inode;
use crate::du::opening;

impl Walk<'_> {
    /// Remembers files that are named, so that they count once if a directory has them as well.
    pub(in crate::du) fn expect(&mut self, inodes: impl IntoIterator<Item = (u64, u64)>) {
        self.named.extend(inodes);
    }

    /// Which file a name stands for, and of what type it is. One of an overlay mount stands for that of a layer.
    pub(in crate::du) fn seen(&self, path: &Path) -> Option<((u64, u64), FileType)> {
        let (seen, kind) = opening::look(path)?;
        if !kind.is_file() || !self.layers.overlaid(seen.0) {
            return Some((seen, kind));
        }
        let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).ok();
        let real = stat.and_then(|stat| self.real(path, &stat));
        Some((real.map_or(seen, |(_, real)| inode(&real)), kind))
    }

    /// The file of a layer that a named file of an overlay mount is.
    pub(in crate::du) fn real(&self, path: &Path, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        self.layers.real(path, stat)
    }

    /// Whether this is the first time that a named file is seen.
    pub(in crate::du) fn first(&self, (dev, inode): (u64, u64)) -> bool {
        self.links.first(dev, inode)
    }

    /// Whether a named file was seen before.
    pub(in crate::du) fn again(&self, (dev, inode): (u64, u64)) -> bool {
        self.links.again(dev, inode)
    }
}
