//! A parallel walk with work stealing: per file one statx, one open, one question, one close.
//!
//! A directory is a task that reads names and hands them on in batches, so that one huge directory keeps all threads
//! busy as well. Tasks refer to files by name and open parent, which no rename above can lead astray, and which has no
//! limit of depth. What is kept in memory is what is under way: a thread works on what it found last, so a tree is
//! walked depth first.

mod arrival;
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
use std::sync::atomic::Ordering::Relaxed;

use rayon::Scope;
use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::RawDir;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;
use rustix::io::Errno;

use node::Arrival;
use node::Dir;
use node::Names;
use node::Node;

use super::exclude::Exclude;
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
use crate::text::words;

/// Names in a batch.
const BATCH: usize = 512;
/// Bytes of lines that are handed on at once.
const PIECE: usize = 1 << 14;
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
        format!(
            "{}, {} cached",
            words::many(files, "file", "files"),
            bytes(pages * rustix::param::page_size() as u64)
        )
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
            ask: self.options.ask.below(fd.as_fd()),
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
                    names.push(name, entry.ino(), entry.file_type() == FileType::RegularFile);
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
        let (mut sum, mut text) = (Totals::default(), Vec::new());
        if self.sink.gone() {
            return;
        }
        names.order.sort_unstable();
        for (_, at, regular) in &names.order {
            if let Ok(name) = CStr::from_bytes_until_nul(&names.bytes[*at..]) {
                self.entry(scope, dir, (name, *regular), &mut sum, &mut text);
            }
            if text.len() > PIECE {
                self.sink.hand_on(std::mem::take(&mut text));
            }
        }
        self.sink.hand_on(text);
        dir.node.add(&sum);
        self.files.fetch_add(sum.files, Relaxed);
        self.cached.fetch_add(sum.cached, Relaxed);
    }

    /// Asks about one; what is written of it goes behind the `text`.
    fn entry<'s>(
        &'s self,
        scope: &Scope<'s>,
        dir: &Arc<Dir>,
        (name, regular): (&CStr, bool),
        sum: &mut Totals,
        text: &mut Vec<u8>,
    ) {
        let os_name = OsStr::from_bytes(name.to_bytes());
        if self.leaves_out(dir, os_name) {
            return;
        }
        // What the directory says is a file is opened by its name and looked at without it: to look up a name takes as
        // long as the rest.
        let early = regular && dir.node.place.is_none() && dir.node.ask.vain().is_none();
        let mut early = early.then(|| open::below(&dir.fd, name));
        let stat = match stat(dir, name, early.as_ref()) {
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
                None => self.open(dir, name, early.take()).map(|fd| (dir.node.ask, fd)),
            }
            .and_then(|(ask, fd)| ask.of_size(opened.insert(fd).as_fd(), size))
            .map(Some),
            Ok(None) | Err(Unknown::NotAFile(_)) => {
                sum.add(&Totals { others: 1, disk, ..Totals::default() });
                return;
            }
            Err(why) => Err(why),
        };
        let totals = match &answer {
            Ok(None) => Totals { files: 1, empty: 1, disk, ..Totals::default() },
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
            let row = Row::new(Kind::File, dir.node.path().join(os_name), depth, totals, answer.err());
            self.hand_on(row, opened, text);
        }
    }

    /// Opens a file, unless it is open already, or that would be in vain.
    fn open(
        &self,
        dir: &Dir,
        name: &CStr,
        early: Option<Result<OwnedFd, Errno>>,
    ) -> Result<OwnedFd, Unknown> {
        match dir.node.ask.vain() {
            Some(why) => Err(why),
            None => Ok(early.unwrap_or_else(|| open::below(&dir.fd, name))?),
        }
    }

    /// Hands a file on that was asked about, and opened for it or not.
    fn hand_on(&self, row: Row, opened: Option<OwnedFd>, text: &mut Vec<u8>) {
        match opened {
            _ if self.sink.written(&row, text) => {}
            Some(file) => self.sink.take_open(row, file.as_fd()),
            None => self.sink.take(row),
        }
    }

    /// Whether it is not to be looked at.
    fn leaves_out(&self, dir: &Dir, name: &OsStr) -> bool {
        let exclude = &self.options.exclude;
        exclude.name(name)
            || exclude.has_paths() && exclude.path(&dir.node.path().join(name), dir.node.places(name))
    }
}

/// What it is: asked of the file, where it is open already, else of its name.
fn stat(dir: &Dir, name: &CStr, opened: Option<&Result<OwnedFd, Errno>>) -> Result<Statx, Errno> {
    match opened {
        Some(Ok(fd)) => rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS),
        _ => {
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            rustix::fs::statx(&dir.fd, name, flags, StatxFlags::BASIC_STATS)
        }
    }
}
