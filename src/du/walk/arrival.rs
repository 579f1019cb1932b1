//! Directories that a walk comes to.

use std::ffi::CStr;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Relaxed;

use rayon::Scope;
use rustix::fs::Statx;
use rustix::fs::StatxAttributes;
use rustix::io::Errno;

use super::Walk;
use super::node::Arrival;
use super::node::Dir;
use super::node::Node;
use crate::du::kinds;
use crate::du::open;
use crate::du::open::dev;
use crate::du::open::inode;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::totals::Totals;

impl Walk<'_> {
    /// A directory below another: opened when a thread comes to it.
    pub(super) fn child<'s>(&'s self, scope: &Scope<'s>, dir: &Arc<Dir>, name: &CStr, stat: &Statx) {
        let here = dev(stat);
        let other = here != dir.node.dev;
        // A look at what would be mounted is no reason to mount it.
        if self.options.flat
            || other && self.options.one_file_system
            || stat.stx_attributes.contains(StatxAttributes::AUTOMOUNT)
        {
            return;
        }
        let mounted = other || stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        dir.node.pending.fetch_add(1, Relaxed);
        let mut node = Node {
            above: Some(Arc::clone(&dir.node)),
            name: OsStr::from_bytes(name.to_bytes()).into(),
            places: Vec::new(),
            depth: dir.node.depth + 1,
            dev: here,
            place: None,
            layer: dir.node.layer || self.layers.is_layer(inode(stat)),
            ask: dir.node.ask,
            pending: AtomicUsize::new(1),
            totals: Mutex::new(Totals { dirs: 1, disk: stat.stx_blocks * 512, ..Totals::default() }),
        };
        node.place = if other {
            self.layers.place(here, &node.path())
        } else {
            dir.node.place.as_ref().map(|place| place.child(&node.name))
        };
        let again = mounted || self.several || self.layers.again(inode(stat));
        let (above, name) = (Arc::clone(dir), name.to_owned());
        let arrival = Arrival { node, inode: stat.stx_ino, other, mounted, again };
        scope.spawn(move |scope| {
            let opened = self.spared(open::directory(&above.fd, &name));
            drop(above);
            self.arrive(scope, arrival, opened);
        });
    }

    /// A directory that a thread has come to.
    pub(super) fn arrive<'s>(
        &'s self,
        scope: &Scope<'s>,
        arrival: Arrival,
        opened: rustix::io::Result<OwnedFd>,
    ) {
        if matches!(opened, Err(Errno::MFILE)) {
            return self.wait(arrival);
        }
        let Arrival { mut node, inode, other, mounted, again } = arrival;
        if let (Ok(fd), true) = (&opened, other) {
            node.ask = self.options.ask.below(fd.as_fd());
        }
        self.arrived.fetch_add(u64::from(opened.is_ok()), Relaxed);
        let node = Arc::new(node);
        match opened {
            Ok(fd) if mounted && kinds::kind(fd.as_fd()).is_some_and(kinds::pseudo) => self.done(node),
            Ok(_) if again && !self.roots.first(node.dev, inode) => {
                // Its blocks are counted where it was seen first.
                *node.totals.lock().unwrap_or_else(PoisonError::into_inner) = Totals::default();
                self.done(node);
            }
            Ok(fd) => self.read(scope, Arc::new(Dir { fd, node })),
            // What has another type by now as well.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                *node.totals.lock().unwrap_or_else(PoisonError::into_inner) = Totals::of_vanished();
                self.done(node);
            }
            Err(e) => self.unread(node, e),
        }
    }

    /// A directory that cannot be read.
    pub(super) fn unread(&self, node: Arc<Node>, why: Errno) {
        self.problems.directory(&node.path(), why);
        node.add(&Totals::of_unread());
        self.done(node);
    }

    /// One thing less to wait for; what is complete is shown and added to what is above it.
    pub(super) fn done(&self, mut node: Arc<Node>) {
        while node.pending.fetch_sub(1, AcqRel) == 1 {
            let totals = *node.totals.lock().unwrap_or_else(PoisonError::into_inner);
            let shown = self.options.directories && node.depth <= self.options.depth;
            if shown && (totals.dirs > 0 || node.depth == 0) {
                self.sink.take(Row::new(Kind::Directory, node.path(), node.depth, totals, None));
            }
            let Some(above) = &node.above else { return };
            above.add(&totals);
            node = Arc::clone(above);
        }
    }
}
