//! Files that processes have open or mapped: deleted ones too, and those of other mount namespaces.

mod container;
mod maps;

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
use super::options::Options;
use super::problems::Problems;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Kind;
use super::row::Row;
use super::row::Sink;
use super::row::Via;
use super::totals::Totals;
use crate::cgroup::Hierarchy;
use crate::exit::Failure;
use maps::Mapped;

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
    let pids = processes(options, &problems, &mut unread)?;
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

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
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
        let opened = opening::open_same(link, inode);
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

/// The processes that the options choose; each of the options must hold.
fn processes(options: &Options, problems: &Problems, unread: &mut u64) -> Result<Vec<u32>, Failure> {
    let wanted = &options.processes;
    for pid in &wanted.pid {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Failure::usage(format!("there is no process {pid}"))
                .remedy("'ps -e' lists the processes that there are"));
        }
    }
    let named: Vec<u32> = wanted.pid.iter().map(|pid| process_of(*pid)).collect();
    let of_cgroup = wanted.cgroup.as_deref().map(|path| members(path, problems, unread)).transpose()?;
    let all = fs::read_dir("/proc").map_err(|e| Failure::failed(format!("cannot read /proc: {e}")))?;
    let mut pids: Vec<u32> = all
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| named.is_empty() || named.contains(pid))
        .filter(|pid| of_cgroup.as_ref().is_none_or(|pids| pids.contains(pid)))
        .filter(|pid| wanted.comm.as_deref().is_none_or(|name| comm(*pid, name)))
        .collect();
    if !wanted.container.is_empty() {
        pids = container::members(&wanted.container, &pids)?;
    }
    pids.sort_unstable();
    // Our own files are of interest to nobody who does not ask for this process.
    let own = std::process::id();
    pids.retain(|pid| *pid != own || named.contains(pid));
    if pids.is_empty() && wanted.comm.is_some() {
        return Err(Failure::usage("no process has that name and what else was requested")
            .remedy("'ps -e -o comm' lists the names; the kernel keeps their first 15 bytes"));
    }
    Ok(pids)
}

/// The process of a thread: /proc lists only processes, though it has a directory for each thread.
fn process_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    tgid.unwrap_or(pid)
}

/// The kernel keeps 15 bytes of a name.
fn comm(pid: u32, name: &str) -> bool {
    let wanted = &name.as_bytes()[..name.len().min(15)];
    fs::read(format!("/proc/{pid}/comm")).is_ok_and(|c| c.strip_suffix(b"\n").unwrap_or(&c) == wanted)
}

/// The processes of a cgroup and those below it. What cannot be read there is reported, but for cgroups that have gone.
fn members(path: &str, problems: &Problems, unread: &mut u64) -> Result<HashSet<u32>, Failure> {
    let missing = |text: String| {
        Failure::usage(text)
            .remedy("/proc/PID/cgroup names the cgroup of a process; 'systemd-cgls' lists all")
    };
    let info = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let hierarchy =
        Hierarchy::find(&info).ok_or_else(|| missing("no cgroup file system is mounted here".into()))?;
    let inside = |root: &str| path.strip_prefix(root).map(|p| p.trim_start_matches('/').to_owned());
    let named = if Path::new(path).starts_with(&hierarchy.mount) {
        PathBuf::from(path)
    } else {
        let rest = inside(&hierarchy.root).unwrap_or_else(|| path.trim_start_matches('/').to_owned());
        hierarchy.mount.join(rest)
    };
    if !named.join("cgroup.procs").exists() {
        return Err(missing(format!("there is no cgroup {path}")));
    }
    let mut pids = HashSet::new();
    let mut dirs = vec![named];
    while let Some(dir) = dirs.pop() {
        let read = fs::read_to_string(dir.join("cgroup.procs")).and_then(|text| {
            pids.extend(text.lines().filter_map(|l| l.parse::<u32>().ok()));
            fs::read_dir(&dir)
        });
        let entries = match read {
            Ok(entries) => entries,
            Err(e) if matches!(errno(&e), Errno::NOENT | Errno::NODEV) => continue,
            Err(e) => {
                *unread += 1;
                problems.directory(&dir, errno(&e));
                continue;
            }
        };
        dirs.extend(entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    Ok(pids)
}

/// Adds what one process has open or mapped.
fn held(pid: u32, exclude: &Exclude, spaces: &mut Spaces, files: &mut Files) -> io::Result<()> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let place = Place::new(&proc, spaces);
    for entry in fs::read_dir(proc.join("fd"))? {
        let link = entry?.path();
        if let Some((path, seen)) = at_once(&link) {
            enter(pid, path.as_deref(), link, seen, &place, exclude, files);
        }
    }
    // A library is mapped in several pieces: one of each file will do.
    let mut seen = HashSet::new();
    for line in fs::read(proc.join("maps"))?.split(|b| *b == b'\n') {
        let Some(mapped) = Mapped::parse(line) else { continue };
        if !seen.insert((mapped.dev, mapped.inode, mapped.path.clone())) {
            continue;
        }
        let link = proc.join("map_files").join(&mapped.link);
        if let Some((path, seen)) = name_of(&link).zip(opening::look(&link)) {
            enter(pid, path.as_deref(), link, seen, &place, exclude, files);
            continue;
        }
        // map_files is for root alone; a file that still has its name is found by that, if it is the same one.
        let names = mapped.names();
        let found = names.iter().find_map(|name| {
            let here = place.name(name);
            mapped.is(&here).then(|| add(pid, name, here, &place, exclude, files))
        });
        let refused = || fs::metadata(&link).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        if found == Some(true) || mapped.pseudo() || !refused() {
            continue;
        }
        let Some(name) = names.into_iter().next_back() else { continue };
        if !exclude.within(named(&name)) {
            let path = place.name(&name);
            let why = Some(Unknown::OnlyMapped);
            let file = || Held {
                path,
                nameless: false,
                link,
                others: Vec::new(),
                processes: BTreeSet::new(),
                shown: None,
                why,
            };
            files.entry((mapped.dev, mapped.inode)).or_insert_with(file).processes.insert(pid);
        }
    }
    Ok(())
}

/// Adds a file if it is one that the page cache holds. Never opens pipes and devices: they might notice.
fn add(pid: u32, path: &Path, link: PathBuf, place: &Place, exclude: &Exclude, files: &mut Files) -> bool {
    let Some(seen) = opening::look(&link) else { return false };
    enter(pid, Some(path), link, seen, place, exclude, files);
    true
}

/// Device and inode, and what kind of file it is.
type Seen = ((u64, u64), FileType);

/// The name of a file and which it is, at one moment: a number that a process has open may mean another file at the next. No name: it is
/// longer than the kernel tells (4095 characters).
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

/// `path`: what it is called, if that is known; else it is called by what opens it.
fn enter(
    pid: u32,
    path: Option<&Path>,
    link: PathBuf,
    (inode, kind): Seen,
    place: &Place,
    exclude: &Exclude,
    files: &mut Files,
) {
    // The second have no pages, whatever they call themselves.
    let cached = kind.is_file() || kind.is_block_device();
    let elsewhere = path.is_some_and(|p| p.starts_with("/proc") || p.starts_with("/sys"));
    // A name that is not known may be one that is to be left out.
    let excluded = path.map_or(!exclude.is_empty(), |path| exclude.within(named(path)));
    if !cached || elsewhere || excluded {
        return;
    }
    let shown = || {
        let overlaid = path.filter(|_| place.layers.overlaid(inode.0));
        overlaid.map(|path| (path.to_owned(), Arc::clone(&place.layers)))
    };
    let held = files.entry(inode).or_insert_with(|| {
        let (path, nameless) = (path.map_or_else(|| link.clone(), |path| place.name(path)), path.is_none());
        let link = link.clone();
        Held {
            path,
            nameless,
            link,
            others: Vec::new(),
            processes: BTreeSet::new(),
            shown: shown(),
            why: None,
        }
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
    held.processes.insert(pid);
}

/// The name that a file had before it was deleted.
fn named(path: &Path) -> &Path {
    path.as_os_str()
        .as_bytes()
        .strip_suffix(b" (deleted)")
        .map_or(path, |name| Path::new(OsStr::from_bytes(name)))
}

/// Where the paths of a process begin, if they mean something else than ours.
///
/// The kernel gives paths as seen from our root, also those of a process that has changed its own root; only what lies
/// in another mount namespace has no path from there, and is named from the root of that.
struct Place {
    root: Option<(PathBuf, PathBuf)>,
    layers: Arc<Layers>,
}

/// What the mounts of each mount namespace say, by the namespace.
type Spaces = HashMap<Option<PathBuf>, Arc<Layers>>;

impl Place {
    fn new(proc: &Path, spaces: &mut Spaces) -> Self {
        let link = |p: &Path, what: &str| fs::read_link(p.join(what)).ok();
        let (own, theirs) = (link(Path::new("/proc/self"), "ns/mnt"), link(proc, "ns/mnt"));
        let differs = theirs.as_ref().is_some_and(|theirs| own.as_ref().is_none_or(|ours| ours != theirs));
        let root = || link(proc, "root").unwrap_or_else(|| "/".into());
        let of = || Arc::new(Layers::read(if differs { proc } else { Path::new("/proc/self") }));
        let layers = Arc::clone(spaces.entry(theirs.filter(|_| differs)).or_insert_with(of));
        Self { root: differs.then(|| (proc.join("root"), root())), layers }
    }

    /// A path that we can use.
    fn name(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some((prefix, root)) if path.is_absolute() => {
                let below = path.strip_prefix(root).or_else(|_| path.strip_prefix("/"));
                prefix.join(below.unwrap_or(path))
            }
            _ => path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests;
