//! A parallel walk with work stealing: per file one statx, one open, one question, one close.
//!
//! A directory is a task that reads names and hands them on in batches, so that one huge directory keeps all threads
//! busy as well. Tasks refer to files by name and open parent, which no rename above can lead astray, and which has no
//! limit of depth. What is kept in memory is what is under way: a thread works on what it found last, so a tree is
//! walked depth first.

mod later;
mod named;
mod node;

use std::collections::HashMap;
use std::ffi::CStr;
use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Relaxed;

use rayon::Scope;
use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::RawDir;
use rustix::fs::Statx;
use rustix::fs::StatxAttributes;
use rustix::fs::StatxFlags;
use rustix::io::Errno;

use node::Arrival;
use node::Dir;
use node::Names;
use node::Node;

use super::exclude::Exclude;
use super::kinds;
use super::layers::Layers;
use super::links::Inodes;
use super::links::Links;
use super::open;
use super::open::dev;
use super::open::inode;
use super::problems::Problems;
use super::residency;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Kind;
use super::row::Row;
use super::row::Sink;
use super::totals::Totals;
use crate::text::numbers::bytes;

/// Names in a batch.
const BATCH: usize = 512;
/// Batches waiting for a thread; a directory that is read faster than its files are asked asks them itself.
const WAITING: usize = 64;

/// What to walk and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// How to ask.
    pub ask: Ask,
    /// Rows down to this depth below an operand.
    pub depth: usize,
    /// Rows for files.
    pub files: bool,
    /// Rows for directories.
    pub directories: bool,
    /// The directory itself, nothing of those below it.
    pub flat: bool,
    /// Stay on the file system of the operand.
    pub one_file_system: bool,
    /// What is left out.
    pub exclude: Exclude,
}

/// What all tasks share.
pub struct Walk<'a> {
    /// The options.
    pub options: &'a Options,
    /// Where rows go.
    pub sink: &'a dyn Sink,
    /// What could not be read or known.
    pub problems: Problems,
    /// Files asked so far.
    pub files: AtomicU64,
    /// Pages found cached so far.
    pub cached: AtomicU64,
    links: Links,
    /// Files and directories that have several paths by way of mounts.
    layers: Layers,
    /// Files that are named beside directories: perhaps also found in one of them.
    named: Inodes,
    /// How files are asked about that are named, by device.
    asks: RwLock<HashMap<u64, Ask>>,
    /// Operands and what is mounted below them: a directory that shows up twice this way is counted once.
    roots: Links,
    /// Whether operands may lie inside each other.
    several: bool,
    waiting: AtomicUsize,
    /// The number of the first file descriptor that no directory takes.
    most_open: i64,
    /// Directories that wait until others are closed.
    later: Mutex<Vec<Arrival>>,
    /// Directories opened so far, operands aside.
    arrived: AtomicU64,
}

impl<'a> Walk<'a> {
    /// A walk that has not begun; `several` directories may be named, one of them perhaps inside another. Files that are
    /// `named` beside them count once if a directory has them as well.
    #[must_use]
    pub fn new(
        options: &'a Options,
        sink: &'a dyn Sink,
        several: bool,
        layers: Layers,
        named: Inodes,
    ) -> Self {
        Self {
            options,
            sink,
            problems: Problems::default(),
            files: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            links: Links::default(),
            layers,
            named,
            asks: RwLock::default(),
            roots: Links::default(),
            several,
            waiting: AtomicUsize::new(0),
            most_open: later::most_open(rayon::current_num_threads()),
            later: Mutex::default(),
            arrived: AtomicU64::new(0),
        }
    }

    /// How far it has come, in words.
    #[must_use]
    pub fn progress(&self) -> String {
        let (files, pages) = (self.files.load(Relaxed), self.cached.load(Relaxed));
        format!("{files} files, {} cached", bytes(pages * rustix::param::page_size() as u64))
    }

    /// Whether a file may be seen again.
    fn may_return(&self, node: &Node, stat: &Statx) -> bool {
        stat.stx_nlink > 1
            || node.layer
            || node.place.is_some()
            || self.layers.again(inode(stat))
            || self.named.contains(inode(stat))
    }

    /// Walks a directory that a user named, and gives what is in it. Its rows go to the sink, its own last.
    #[must_use]
    pub fn directory(&self, path: &Path, fd: OwnedFd) -> Totals {
        let stat = match rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS) {
            Ok(stat) => stat,
            Err(e) => {
                self.problems.directory(path, e);
                return Totals::of_unread();
            }
        };
        if !self.roots.first(dev(&stat), stat.stx_ino) {
            self.problems.twice(path);
            return Totals::default();
        }
        let node = Arc::new(Node {
            above: None,
            name: path.as_os_str().into(),
            places: self.options.exclude.places(path),
            depth: 0,
            dev: dev(&stat),
            place: self.layers.place(dev(&stat), path),
            layer: self.layers.in_layer(path),
            ask: self.options.ask.on(fd.as_fd()),
            pending: AtomicUsize::new(1),
            totals: Mutex::new(Totals { dirs: 1, disk: stat.stx_blocks * 512, ..Totals::default() }),
        });
        let dir = Arc::new(Dir { fd, node: Arc::clone(&node) });
        rayon::scope(|scope| scope.spawn(move |scope| self.read(scope, dir)));
        self.walk_later();
        *node.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the names of a directory.
    fn read<'s>(&'s self, scope: &Scope<'s>, dir: Arc<Dir>) {
        let mut room = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(dir.fd.as_fd(), room.spare_capacity_mut());
        let mut names = Names::default();
        loop {
            match entries.next() {
                Some(Ok(entry)) => {
                    let name = entry.file_name().to_bytes_with_nul();
                    if name == b".\0" || name == b"..\0" {
                        continue;
                    }
                    names.push(name, entry.ino());
                }
                // Removed while it was read.
                None | Some(Err(Errno::NOENT)) => break,
                Some(Err(e)) => {
                    self.problems.directory(&dir.node.path(), e);
                    dir.node.add(&Totals::of_unread());
                    break;
                }
            }
            if self.sink.gone() {
                break;
            }
            if names.order.len() >= BATCH {
                let names = std::mem::take(&mut names);
                if self.waiting.load(Relaxed) < WAITING {
                    self.waiting.fetch_add(1, Relaxed);
                    dir.node.pending.fetch_add(1, Relaxed);
                    let dir = Arc::clone(&dir);
                    scope.spawn(move |scope| {
                        self.waiting.fetch_sub(1, Relaxed);
                        self.batch(scope, &dir, names);
                        self.done(Arc::clone(&dir.node));
                    });
                } else {
                    self.batch(scope, &dir, names);
                }
            }
        }
        self.batch(scope, &dir, names);
        self.done(Arc::clone(&dir.node));
    }

    /// Asks about the names of a batch.
    fn batch<'s>(&'s self, scope: &Scope<'s>, dir: &Arc<Dir>, mut names: Names) {
        let mut sum = Totals::default();
        if self.sink.gone() {
            return;
        }
        names.order.sort_unstable();
        for (_, at) in &names.order {
            if let Ok(name) = CStr::from_bytes_until_nul(&names.bytes[*at..]) {
                self.entry(scope, dir, name, &mut sum);
            }
        }
        dir.node.add(&sum);
        self.files.fetch_add(sum.files, Relaxed);
        self.cached.fetch_add(sum.cached, Relaxed);
    }

    fn entry<'s>(&'s self, scope: &Scope<'s>, dir: &Arc<Dir>, name: &CStr, sum: &mut Totals) {
        let os_name = OsStr::from_bytes(name.to_bytes());
        if self.options.exclude.name(os_name) {
            return;
        }
        let exclude = &self.options.exclude;
        if exclude.has_paths() && exclude.path(&dir.node.path().join(os_name), dir.node.places(os_name)) {
            return;
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let stat = match rustix::fs::statx(&dir.fd, name, flags, StatxFlags::BASIC_STATS) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return sum.add(&Totals::of_vanished()),
            Err(e) => {
                self.problems.directory(&dir.node.path().join(os_name), e);
                return sum.add(&Totals::of_unread());
            }
        };
        if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory {
            return self.child(scope, dir, name, &stat);
        }
        let disk = stat.stx_blocks * 512;
        if dir.node.ask.vain() == Some(Unknown::NoCache) {
            sum.add(&Totals { others: 1, disk, ..Totals::default() });
            return;
        }
        // Its pages are those of a layer of the overlay, if that can be known.
        let place = dir.node.place.as_ref().filter(|_| residency::regular(&stat).is_ok());
        let real = place.and_then(|place| place.real(os_name, &stat));
        if self.may_return(&dir.node, &stat)
            && !self.first(real.as_ref().map_or_else(|| inode(&stat), |(_, real)| inode(real)))
        {
            return;
        }
        let placed = real.is_some();
        let mut opened = None;
        let answer = match residency::regular(&stat) {
            Ok(Some(0)) => Ok(None),
            Ok(Some(size)) => match real {
                Some((fd, _)) => Ok((self.options.ask.on(fd.as_fd()), fd)),
                None => open::below(&dir.fd, name).map(|fd| (dir.node.ask, fd)),
            }
            .map_err(Unknown::from)
            .and_then(|(ask, fd)| ask.of_size(opened.insert(fd).as_fd(), size))
            .map(Some),
            Ok(None) | Err(Unknown::NotAFile(_)) => {
                sum.add(&Totals { others: 1, disk, ..Totals::default() });
                return;
            }
            Err(why) => Err(why),
        };
        let totals = match &answer {
            Ok(None) => Totals { files: 1, disk, ..Totals::default() },
            Ok(Some(residency)) => Totals::of_file(stat.stx_size, disk, Ok(residency)),
            // A symbolic link that was none before is another file by the same name.
            Err(Unknown::Vanished | Unknown::Loop) => return sum.add(&Totals::of_vanished()),
            Err(why) => {
                self.problems.unknown(*why, || dir.node.path().join(os_name));
                Totals::of_file(stat.stx_size, disk, Err(*why))
            }
        };
        let unplaced = place.is_some() && !placed && self.layers.shared() && totals.cached > 0;
        let totals = Totals { perhaps_shared: u64::from(unplaced), ..totals };
        sum.add(&totals);
        let depth = dir.node.depth + 1;
        if self.options.files && depth <= self.options.depth && self.sink.wants(&totals) {
            let path = dir.node.path().join(os_name);
            let row = Row::new(Kind::File, path, depth, totals, answer.err());
            match opened {
                Some(file) => self.sink.take_open(row, file.as_fd()),
                None => self.sink.take(row),
            }
        }
    }

    /// A directory below another: opened when a thread comes to it.
    fn child<'s>(&'s self, scope: &Scope<'s>, dir: &Arc<Dir>, name: &CStr, stat: &Statx) {
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
    fn arrive<'s>(&'s self, scope: &Scope<'s>, arrival: Arrival, opened: rustix::io::Result<OwnedFd>) {
        if matches!(opened, Err(Errno::MFILE)) {
            return self.wait(arrival);
        }
        let Arrival { mut node, inode, other, mounted, again } = arrival;
        if let (Ok(fd), true) = (&opened, other) {
            node.ask = self.options.ask.on(fd.as_fd());
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
    fn unread(&self, node: Arc<Node>, why: Errno) {
        self.problems.directory(&node.path(), why);
        node.add(&Totals::of_unread());
        self.done(node);
    }

    /// One thing less to wait for; what is complete is shown and added to what is above it.
    fn done(&self, mut node: Arc<Node>) {
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
