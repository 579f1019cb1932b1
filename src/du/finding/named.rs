//! Files that are named, or listed: looked at one by one, in all threads.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::RwLock;

use rustix::fs::FileType;
use rustix::fs::Statx;

use super::blocks;
use super::blocks::Block;
use crate::du::found::Found;
use crate::du::layers::Last;
use crate::du::layers::Layers;
use crate::du::layers::Operands;
use crate::du::links::Inodes;
use crate::du::links::Links;
use crate::du::open;
use crate::du::opening;
use crate::du::opening::Aim;
use crate::du::opening::Seen;
use crate::du::opening::counted;
use crate::du::opening::open_named;
use crate::du::opening::open_seen;
use crate::du::options::Options;
use crate::du::paths::Paths;
use crate::du::residency::Unknown;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sink;
use crate::du::totals::Totals;
use crate::du::view;
use crate::du::walk::Walk;
use crate::exit::Failure;
use crate::options::Format;

/// Names that one thread takes at a time for a first look.
const TOGETHER: usize = 256;

/// How named files are looked at.
pub(super) struct Looking<'a, 'w> {
    pub(super) options: &'a Options,
    pub(super) walk: &'a Walk<'w>,
    /// Whether rows go to the sink of the walk; else they are kept in their order.
    pub(super) direct: bool,
}

/// What came of some names.
#[derive(Default)]
pub(super) struct Part {
    /// What is written of them.
    text: Vec<u8>,
    pub(super) total: Totals,
    notes: Vec<String>,
    missing: bool,
    rows: Vec<Row>,
    /// What is a directory by now.
    pub(super) directories: Vec<PathBuf>,
}

impl Part {
    /// Adds it to what was found before.
    pub(super) fn join(self, found: &mut Found, sink: &dyn Sink, first: Option<&mut Vec<Row>>) {
        sink.hand_on(self.text);
        found.total.add(&self.total);
        found.notes.extend(self.notes);
        found.missing |= self.missing;
        if let Some(first) = first {
            first.extend(self.rows);
        }
    }
}

impl Looking<'_, '_> {
    /// A directory that was named, by all threads.
    pub(super) fn directory(&self, path: &Path) -> Part {
        let mut part = Part::default();
        match open_seen(path, FileType::Directory, Aim::Look) {
            Ok((fd, stat)) if is_directory(&stat) => part.total = self.walk.directory(path, fd),
            opened => self.file(path, opened, &mut part),
        }
        part
    }

    /// Another name, by this thread.
    pub(super) fn add(&self, path: &Path, kind: Named, part: &mut Part) {
        let opened = match kind {
            Named::File => open_seen(path, FileType::RegularFile, Aim::Look),
            _ => open_named(path, Aim::Look),
        };
        match opened {
            Ok((_, stat)) if is_directory(&stat) => part.directories.push(path.to_owned()),
            opened => self.file(path, opened, part),
        }
    }

    fn file(&self, path: &Path, opened: Result<(OwnedFd, Statx), Unknown>, part: &mut Part) {
        let (walk, acting) = (self.walk, self.options.task.acts());
        let opened = opened.map(|(fd, stat)| walk.real(path, &stat).unwrap_or((fd, stat)));
        // One that cannot be opened has a number all the same.
        let which = match &opened {
            Ok((_, stat)) => Some(open::inode(stat)),
            Err(_) => walk.seen(path),
        };
        let first = which.is_none_or(|inode| walk.first(inode));
        // Nothing is done twice about a file that has two names.
        if acting && !first {
            return;
        }
        let (totals, why) = counted(path, &opened, |file, stat| walk.ask_on(file, stat));
        if first {
            part.total.add(&totals);
        }
        if let Some(why) = why {
            part.missing |= !self.options.task.changes() || !why.withheld();
            part.notes.push(format!("{}: {why}", view::name(path)));
        }
        let row = || Row::new(Kind::File, path.to_owned(), 0, totals, why);
        if !self.direct {
            part.rows.extend(has_row(why, self.options).then(row));
        } else if acting || has_row(why, self.options) && walk.sink.wants(&totals) {
            let row = row();
            if walk.sink.written(&row, &mut part.text) {
                return;
            }
            match &opened {
                Ok((file, _)) => walk.sink.take_open(row, file.as_fd()),
                Err(_) => walk.sink.take(row),
            }
        }
    }
}

fn is_directory(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory
}

/// Whether a named file has a row. Of what is not there the warning is all that is told to people.
fn has_row(why: Option<Unknown>, options: &Options) -> bool {
    options.format != Format::Text || why != Some(Unknown::Vanished)
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// One that can be opened and looked at.
    File,
    Directory,
    /// Something else, or nothing that one may know.
    Other,
}

impl From<Option<Seen>> for Named {
    fn from(seen: Option<Seen>) -> Self {
        match seen.map(|seen| seen.kind) {
            Some(FileType::Directory) => Named::Directory,
            Some(FileType::RegularFile) => Named::File,
            _ => Named::Other,
        }
    }
}

/// Which devices are FUSE: each is asked once.
#[derive(Default)]
struct Fuse(RwLock<HashMap<u64, bool>>);

impl Fuse {
    /// Whether the device of this file is.
    fn holds(&self, path: &Path, dev: u64) -> bool {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&dev) {
            return *known;
        }
        let fuse = match opening::bears_opening(path) {
            Ok(()) => false,
            Err(Unknown::Fuse) => true,
            // That says nothing of others there, and who opens this one asks for itself.
            Err(_) => return true,
        };
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(dev, fuse);
        fuse
    }
}

/// What is known of all paths before any is opened.
pub(super) struct Listed {
    pub(super) kinds: Vec<Named>,
    pub(super) layers: Layers,
    /// Files that may be in directories which are named, too.
    pub(super) named: Inodes,
}

impl Listed {
    pub(super) fn new(paths: &Paths) -> Result<Self, Failure> {
        let (layers, operands) = (RwLock::new(Layers::mounts()), Operands::default());
        let (mut kinds, named, fuse) = (Vec::new(), Links::default(), Fuse::default());
        let look = |block: &Block| {
            let roots = layers.read().unwrap_or_else(PoisonError::into_inner).new_roots(block.paths());
            if !roots.is_empty() {
                layers.write().unwrap_or_else(PoisonError::into_inner).add_roots(roots);
            }
            let layers = layers.read().unwrap_or_else(PoisonError::into_inner);
            let mut last = Last::default();
            let look = |path: &Path| {
                let seen = layers.seen(path);
                if layers.matter() {
                    let plain = seen.is_none_or(|seen| !seen.link && !seen.kind.is_dir());
                    operands.add(path, plain, &layers, &mut last);
                }
                if let Some(Seen { inode: (dev, inode), .. }) = seen.filter(|seen| !seen.kind.is_dir()) {
                    let _ = named.first(dev, inode);
                }
                match Named::from(seen) {
                    Named::File if seen.is_some_and(|seen| fuse.holds(path, seen.inode.0)) => Named::Other,
                    kind => kind,
                }
            };
            block.paths().map(look).collect::<Vec<_>>()
        };
        blocks::each(paths, TOGETHER, look, |some| {
            kinds.extend(some);
            true
        })?;
        let mut layers = layers.into_inner().unwrap_or_else(PoisonError::into_inner);
        layers.near(operands);
        let named = if kinds.contains(&Named::Directory) { named } else { Links::default() };
        Ok(Self { kinds, layers, named: named.into() })
    }
}
