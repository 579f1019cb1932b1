//! What a walk keeps of directories that are under way.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

use super::super::layers::Place;
use super::super::residency::Ask;
use super::super::totals::Totals;

/// A directory whose rest is under way.
pub(super) struct Node {
    pub(super) above: Option<Arc<Node>>,
    pub(super) name: Box<OsStr>,
    /// Of an operand, the absolute paths, where they matter.
    pub(super) places: Vec<PathBuf>,
    pub(super) depth: usize,
    pub(super) dev: u64,
    /// Of an overlay mount, which directory it is.
    pub(super) place: Option<Place>,
    /// Whether it lies in a layer of an overlay mount, where its files may be met again.
    pub(super) layer: bool,
    /// How its files are asked about.
    pub(super) ask: Ask,
    /// Itself while it is read, its batches, its directories.
    pub(super) pending: AtomicUsize,
    pub(super) totals: Mutex<Totals>,
}

impl Node {
    /// The names from the operand on, the other way round, and the operand itself.
    fn names(&self) -> (Vec<&OsStr>, &Self) {
        let mut names = Vec::new();
        let mut node = self;
        while let Some(above) = &node.above {
            names.push(&*node.name);
            node = above;
        }
        (names, node)
    }

    pub(super) fn path(&self) -> PathBuf {
        let (names, operand) = self.names();
        std::iter::once(&*operand.name).chain(names.into_iter().rev()).collect()
    }

    /// The absolute paths, where they matter, of a name in this directory.
    pub(super) fn places(&self, name: &OsStr) -> impl Iterator<Item = PathBuf> {
        let (names, operand) = self.names();
        let below: PathBuf = names.into_iter().rev().chain([name]).collect();
        operand.places.iter().map(move |place| place.join(&below))
    }

    pub(super) fn add(&self, totals: &Totals) {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).add(totals);
    }
}

impl Drop for Node {
    /// One after the other: a chain of ten thousand directories must not be a recursion.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(node) = above {
            above = Arc::into_inner(node).and_then(|mut node| node.above.take());
        }
    }
}

/// Names of a directory, each ended by a zero byte, with the inodes that they had when it was read.
///
/// They are asked about in the order of their inodes: where these are not in memory, that is how they lie on the disk,
/// while directories of ext4 list names by their hash.
#[derive(Default)]
pub(super) struct Names {
    pub(super) bytes: Vec<u8>,
    /// Inode, where the name begins, and whether the directory says that it is a regular file.
    pub(super) order: Vec<(u64, usize, bool)>,
}

impl Names {
    pub(super) fn push(&mut self, name: &[u8], inode: u64, regular: bool) {
        self.order.push((inode, self.bytes.len(), regular));
        self.bytes.extend_from_slice(name);
    }
}

/// A directory that is open.
pub(super) struct Dir {
    pub(super) fd: OwnedFd,
    pub(super) node: Arc<Node>,
}

/// A directory that was found, and is to be opened.
pub(super) struct Arrival {
    pub(super) node: Node,
    pub(super) inode: u64,
    /// Whether it is on another file system than the one above.
    pub(super) other: bool,
    /// Whether something is mounted there.
    pub(super) mounted: bool,
    /// Whether it may be met twice.
    pub(super) again: bool,
}
