//! Files that processes have open or mapped: deleted ones too, and those of other mount namespaces.

mod choice;
mod container;
mod maps;
mod place;

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;
use rustix::io::Errno;

use super::exclude::Exclude;
use super::found::Found;
use super::layers::Layers;
use super::open;
use super::opening;
use super::opening::Aim;
use super::options::Options;
use super::problems::Problems;
use super::problems::errno;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Kind;
use super::row::Row;
use super::row::Sink;
use super::row::Via;
use super::totals::Totals;
use crate::exit::Failure;
use maps::Mapped;
use place::Place;
use place::Spaces;

/// A file that somebody has.
#[derive(Debug, Clone)]
struct Held {
    path: PathBuf,
    /// That is what opens it, since its name is too long.
    nameless: bool,
    link: PathBuf,
    /// Where else it was seen: a number may mean another file by the time that it is opened.
    others: Vec<PathBuf>,
    processes: BTreeSet<u32>,
    /// Of an overlay mount: its path there, and what the mounts of that process say of layers.
    shown: Option<(PathBuf, Arc<Layers>)>,
    /// Why nothing can be known of it.
    why: Option<Unknown>,
}

impl Held {
    /// One of which it is only known what it is called, and what opens it.
    fn new(path: PathBuf, link: PathBuf) -> Self {
        Self {
            path,
            nameless: false,
            link,
            others: Vec::new(),
            processes: BTreeSet::new(),
            shown: None,
            why: None,
        }
    }

    /// The file of a layer that an open file of an overlay mount is.
    fn real(&self, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        let (path, layers) = self.shown.as_ref()?;
        layers.real_at(path, stat)
    }
}

/// So many other places are remembered.
const OTHERS: usize = 4;

/// Files by device and inode: each is counted once, whoever has it.
type Files = HashMap<(u64, u64), Held>;

/// Everything that these processes have open or mapped.
///
/// # Errors
/// When there is no such process or cgroup.
pub fn find(options: &Options, sink: &dyn Sink) -> Result<Found, Failure> {
    let exclude = Exclude::new(&options.exclude).map_err(Failure::usage)?;
    let problems = Problems::default();
    // What could not be looked into is in no sum: these are at least what they say.
    let mut unread = 0;
    let pids = choice::processes(options, &problems, &mut unread)?;
    let mut files = Files::new();
    let mut spaces = Spaces::new();
    for &pid in &pids {
        match held(pid, &exclude, &mut spaces, &mut files) {
            // It ended, or is a kernel thread that has no files.
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(e) => {
                unread += 1;
                problems.directory(Path::new(&format!("process {pid}")), errno(&e));
            }
        }
    }
    let ask = options.ask();
    let mut total = once(files)
        .into_par_iter()
        .map(|(inode, file)| {
            let (totals, row) = counted(inode, file, ask);
            if let Some(row) = row {
                if let Some(why) = row.why {
                    problems.unknown(why, || row.path.clone());
                }
                sink.take(row);
            }
            totals
        })
        .reduce(Totals::default, |mut a, b| {
            a.add(&b);
            a
        });
    total.add(&Totals { unread, ..Totals::default() });
    Ok(Found { total, notes: problems.lines(), missing: unread > 0, ..Found::default() })
}

/// Files of overlay mounts that are one file of a layer, once.
fn once(files: Files) -> Vec<((u64, u64), Held)> {
    let mut out: Vec<((u64, u64), Held)> = Vec::with_capacity(files.len());
    let (shown, mut plain): (Files, Files) = files.into_iter().partition(|(_, held)| held.shown.is_some());
    let mut real: HashMap<(u64, u64), usize> = HashMap::new();
    for (inode, held) in shown {
        let stat = rustix::fs::statx(CWD, &held.link, AtFlags::empty(), StatxFlags::BASIC_STATS).ok();
        let found = stat.filter(|stat| open::inode(stat) == inode).and_then(|stat| held.real(&stat));
        let Some(key) = found.map(|(_, stat)| open::inode(&stat)) else {
            out.push((inode, held));
            continue;
        };
        if let Some(first) = plain.get_mut(&key).or_else(|| Some(&mut out.get_mut(*real.get(&key)?)?.1)) {
            first.processes.extend(held.processes);
        } else {
            real.insert(key, out.len());
            out.push((inode, held));
        }
    }
    out.extend(plain);
    out
}

/// What is cached of a file, and its row; none if it was closed since it was found, whatever its number means by now.
fn counted(inode: (u64, u64), file: Held, ask: Ask) -> (Totals, Option<Row>) {
    if let Some(why) = file.why {
        let totals = Totals::of_file(0, 0, Err(why));
        let mut row = Row::new(Kind::File, file.path, 0, totals, Some(why));
        row.processes = file.processes.into_iter().collect();
        return (totals, Some(row));
    }
    for link in std::iter::once(&file.link).chain(&file.others) {
        let opened = opening::open_same(link, inode, Aim::Look);
        let real = opened.as_ref().ok().and_then(|(_, stat)| file.real(stat));
        let unplaced = file.shown.is_some() && real.is_none();
        let (mut totals, why) = opening::counted(link, &real.map_or(opened, Ok), |fd, _| ask.on(fd));
        totals.perhaps_shared = u64::from(unplaced && totals.cached > 0);
        if why == Some(Unknown::Vanished) {
            continue;
        }
        let link = link.clone();
        let mut row = Row::new(Kind::File, file.path, 0, totals, why);
        row.processes = file.processes.into_iter().collect();
        row.via = Some(Via { link, inode });
        return (totals, Some(row));
    }
    (Totals::of_vanished(), None)
}

/// A process that is looked into, and the files that it adds to.
struct Process<'a> {
    pid: u32,
    /// `/proc/PID`.
    proc: PathBuf,
    place: Place,
    exclude: &'a Exclude,
    files: &'a mut Files,
}

/// Adds what one process has open or mapped.
fn held(pid: u32, exclude: &Exclude, spaces: &mut Spaces, files: &mut Files) -> io::Result<()> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let place = Place::new(&proc, spaces);
    let mut process = Process { pid, proc, place, exclude, files };
    process.open()?;
    process.mapped()
}

impl Process<'_> {
    /// Adds what it has open.
    fn open(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.proc.join("fd"))? {
            let link = entry?.path();
            if let Some((path, seen)) = at_once(&link) {
                self.enter(path.as_deref(), link, seen);
            }
        }
        Ok(())
    }

    /// Adds what it has mapped.
    fn mapped(&mut self) -> io::Result<()> {
        // A library is mapped in several pieces: one of each file will do.
        let mut seen = HashSet::new();
        for line in fs::read(self.proc.join("maps"))?.split(|b| *b == b'\n') {
            if let Some(mapped) = Mapped::parse(line) {
                if seen.insert((mapped.dev, mapped.inode, mapped.path.clone())) {
                    self.mapping(&mapped);
                }
            }
        }
        Ok(())
    }

    /// Adds a file that it has mapped.
    fn mapping(&mut self, mapped: &Mapped) {
        let link = self.proc.join("map_files").join(&mapped.link);
        if let Some((path, seen)) = name_of(&link).zip(opening::look(&link)) {
            self.enter(path.as_deref(), link, seen);
            return;
        }
        // map_files is for root alone; a file that still has its name is found by that, if it is the same one.
        let names = mapped.names();
        let found = names.iter().find_map(|name| {
            let here = self.place.name(name);
            mapped.is(&here).then(|| self.add(name, here))
        });
        let refused = || fs::metadata(&link).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        if found == Some(true) || mapped.pseudo() || !refused() {
            return;
        }
        let Some(name) = names.into_iter().next_back() else { return };
        if !self.exclude.within(named(&name)) {
            let why = Some(Unknown::OnlyMapped);
            let path = self.place.name(&name);
            let file = || Held { why, ..Held::new(path, link) };
            let held = self.files.entry((mapped.dev, mapped.inode)).or_insert_with(file);
            held.processes.insert(self.pid);
        }
    }

    /// Adds a file if it is one that the page cache holds. Never opens pipes and devices: they might notice.
    fn add(&mut self, path: &Path, link: PathBuf) -> bool {
        let Some(seen) = opening::look(&link) else { return false };
        self.enter(Some(path), link, seen);
        true
    }

    /// `path`: what it is called, if that is known; else it is called by what opens it.
    fn enter(&mut self, path: Option<&Path>, link: PathBuf, (inode, kind): Seen) {
        // The second have no pages, whatever they call themselves.
        let cached = kind.is_file() || kind.is_block_device();
        let elsewhere = path.is_some_and(|p| p.starts_with("/proc") || p.starts_with("/sys"));
        // A name that is not known may be one that is to be left out.
        let excluded = path.map_or(!self.exclude.is_empty(), |path| self.exclude.within(named(path)));
        if !cached || elsewhere || excluded {
            return;
        }
        let place = &self.place;
        let shown = || {
            let overlaid = path.filter(|_| place.layers.overlaid(inode.0));
            overlaid.map(|path| (path.to_owned(), Arc::clone(&place.layers)))
        };
        let held = self.files.entry(inode).or_insert_with(|| {
            let (name, nameless) =
                (path.map_or_else(|| link.clone(), |path| place.name(path)), path.is_none());
            Held { nameless, shown: shown(), ..Held::new(name, link.clone()) }
        });
        if let Some(path) = path.filter(|_| held.nameless) {
            (held.path, held.shown, held.nameless) = (place.name(path), shown(), false);
        }
        // Somebody else could not open it.
        if held.why.take().is_some() {
            held.link = link;
        } else if held.link != link && held.others.len() < OTHERS {
            held.others.push(link);
        }
        held.processes.insert(self.pid);
    }
}

/// Device and inode, and what kind of file it is.
type Seen = ((u64, u64), FileType);

/// The name of a file and which it is, at one moment: a number that a process has open may mean another file at the
/// next. No name: it is longer than the kernel tells (4095 characters).
fn at_once(link: &Path) -> Option<(Option<PathBuf>, Seen)> {
    const TIMES: usize = 3;
    (0..TIMES).find_map(|_| {
        let (path, seen) = (name_of(link)?, opening::look(link)?);
        (name_of(link)? == path).then_some((path, seen))
    })
}

fn name_of(link: &Path) -> Option<Option<PathBuf>> {
    match fs::read_link(link) {
        Err(e) if errno(&e) == Errno::NAMETOOLONG => Some(None),
        name => name.ok().map(Some),
    }
}

/// The name that a file had before it was deleted.
fn named(path: &Path) -> &Path {
    path.as_os_str()
        .as_bytes()
        .strip_suffix(b" (deleted)")
        .map_or(path, |name| Path::new(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests;
