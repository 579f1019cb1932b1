//! Files that processes have open or mapped: deleted ones too, and those of other mount namespaces.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;

use super::cli::Args;
use super::exclude::Exclude;
use super::problems::Problems;
use super::residency::Ask;
use super::residency::Unknown;
use super::row::Keep;
use super::row::Kind;
use super::row::Row;
use super::row::Sink as _;
use super::row::Sort;
use super::row::Via;
use super::run;
use super::run::Found;
use super::totals::Totals;
use crate::cgroup::Hierarchy;
use crate::exit::Failure;

/// A file that somebody has.
#[derive(Debug, Clone)]
struct Held {
    path: PathBuf,
    link: PathBuf,
    owners: BTreeSet<u32>,
}

/// Files by device and inode: each is asked about once, whoever has it.
type Files = HashMap<(u64, u64), Held>;

/// Everything that the processes asked for have open or mapped.
///
/// # Errors
/// When there is no such process or cgroup.
pub fn find(args: &Args) -> Result<Found, Failure> {
    let exclude = Exclude::new(&args.exclude).map_err(Failure::usage)?;
    let pids = processes(args)?;
    let mut files = Files::new();
    let problems = Problems::default();
    let mut refused = false;
    for &pid in &pids {
        match held(pid, &exclude, &mut files) {
            // It ended, or is a kernel thread that has no files.
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(e) => {
                refused = true;
                let errno = rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO);
                problems.directory(Path::new(&format!("process {pid}")), errno);
            }
        }
    }
    let ask = args.ask();
    let page = rustix::param::page_size() as u64;
    let acting = args.evict || args.load || args.save.is_some();
    let top = args.top.map(|n| n as usize).filter(|_| !acting);
    let least = args.min.map_or(0, |bytes| bytes.div_ceil(page));
    let keep = Keep::new(args.sort.unwrap_or(Sort::Cached), top, least).only(run::wanted(args));
    let total = files
        .into_par_iter()
        .map(|(inode, file)| {
            let (totals, row) = asked(inode, file, ask);
            if let Some(row) = row {
                if let Some(why) = row.why {
                    problems.unknown(why, || row.path.clone());
                }
                keep.take(row);
            }
            totals
        })
        .reduce(Totals::default, |mut a, b| {
            a.add(&b);
            a
        });
    Ok(Found { rows: keep.rows(), total, notes: problems.lines(), missing: refused })
}

/// What is cached of a file, and its row; none if it was closed since it was found, whatever its number means by now.
fn asked(inode: (u64, u64), file: Held, ask: Ask) -> (Totals, Option<Row>) {
    let (totals, why) = run::told(&file.link, run::open_same(&file.link, inode), ask);
    if why == Some(Unknown::Vanished) {
        return (Totals::of_vanished(), None);
    }
    let mut row = Row::new(Kind::File, file.path, 0, totals, why);
    row.owners = file.owners.into_iter().collect();
    row.via = Some(Via { link: file.link, inode });
    (totals, Some(row))
}

/// The processes that the options choose; each of the options must hold.
fn processes(args: &Args) -> Result<Vec<u32>, Failure> {
    for pid in &args.pid {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Failure::usage(format!("there is no process {pid}"))
                .remedy("'ps -e' lists the processes that there are"));
        }
    }
    let named: Vec<u32> = args.pid.iter().map(|pid| process_of(*pid)).collect();
    let of_cgroup = args.cgroup.as_deref().map(members).transpose()?;
    let all = fs::read_dir("/proc").map_err(|e| Failure::failed(format!("cannot read /proc: {e}")))?;
    let mut pids: Vec<u32> = all
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| named.is_empty() || named.contains(pid))
        .filter(|pid| of_cgroup.as_ref().is_none_or(|pids| pids.contains(pid)))
        .filter(|pid| args.comm.as_deref().is_none_or(|name| comm(*pid, name)))
        .collect();
    pids.sort_unstable();
    // Our own files are of interest to nobody who does not ask for this process.
    let own = std::process::id();
    pids.retain(|pid| *pid != own || named.contains(pid));
    if pids.is_empty() && args.comm.is_some() {
        return Err(Failure::usage("no process has that name and what else was asked for")
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

/// The processes of a cgroup and those below it.
fn members(path: &str) -> Result<HashSet<u32>, Failure> {
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
        if let Ok(text) = fs::read_to_string(dir.join("cgroup.procs")) {
            pids.extend(text.lines().filter_map(|l| l.parse::<u32>().ok()));
        }
        let Ok(entries) = fs::read_dir(dir) else { continue };
        dirs.extend(entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    Ok(pids)
}

/// Adds what one process has open or mapped.
fn held(pid: u32, exclude: &Exclude, files: &mut Files) -> io::Result<()> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let prefix = elsewhere(&proc);
    for entry in fs::read_dir(proc.join("fd"))? {
        let link = entry?.path();
        let Ok(path) = fs::read_link(&link) else { continue };
        add(pid, &path, link, prefix.as_deref(), exclude, files);
    }
    // A library is mapped in several pieces: one of each file will do.
    let mut seen = HashSet::new();
    for line in fs::read_to_string(proc.join("maps"))?.lines() {
        let mut words = line.splitn(6, ' ');
        let (Some(range), Some(dev), Some(inode)) = (words.next(), words.nth(2), words.next()) else {
            continue;
        };
        if inode == "0" || !seen.insert((dev.to_owned(), inode.to_owned())) {
            continue;
        }
        let path = words.next().unwrap_or_default().trim_start();
        // The kernel leaves leading zeros away in one file and not in the other.
        let link = proc.join("map_files").join(link_name(range));
        if let Ok(target) = fs::read_link(&link) {
            if add(pid, &target, link, prefix.as_deref(), exclude, files) {
                continue;
            }
        }
        // map_files is for root alone; a file that still has its name is found by that, if it is the same one.
        let by_name = proc.join("root").join(path.trim_start_matches('/'));
        let same = fs::metadata(&by_name).is_ok_and(|m| m.ino().to_string() == inode);
        if same {
            add(pid, Path::new(path), by_name, prefix.as_deref(), exclude, files);
        }
    }
    Ok(())
}

/// `00400000-00401000` of maps is `400000-401000` in map_files.
fn link_name(range: &str) -> String {
    let bare = |n: &str| match n.trim_start_matches('0') {
        "" => "0".to_owned(),
        n => n.to_owned(),
    };
    range.split_once('-').map_or_else(|| range.to_owned(), |(a, b)| format!("{}-{}", bare(a), bare(b)))
}

/// Adds a file if it is one that the page cache holds. Never opens pipes and devices: they might notice.
fn add(
    pid: u32,
    path: &Path,
    link: PathBuf,
    prefix: Option<&Path>,
    exclude: &Exclude,
    files: &mut Files,
) -> bool {
    let Some((inode, kind)) = run::look(&link) else { return false };
    if !kind.is_file() && !kind.is_block_device() {
        return true;
    }
    // These have no pages, whatever they call themselves.
    if path.starts_with("/proc") || path.starts_with("/sys") {
        return true;
    }
    if exclude.within(named(path)) {
        return true;
    }
    let held = files.entry(inode).or_insert_with(|| {
        let path = match prefix {
            Some(prefix) if path.is_absolute() => prefix.join(path.strip_prefix("/").unwrap_or(path)),
            _ => path.to_path_buf(),
        };
        Held { path, link, owners: BTreeSet::new() }
    });
    held.owners.insert(pid);
    true
}

/// The name that a file had before it was deleted.
fn named(path: &Path) -> &Path {
    path.as_os_str()
        .as_bytes()
        .strip_suffix(b" (deleted)")
        .map_or(path, |name| Path::new(OsStr::from_bytes(name)))
}

/// `/proc/PID/root` for a process whose paths mean something else than ours.
fn elsewhere(proc: &Path) -> Option<PathBuf> {
    let of = |p: &Path, what: &str| fs::read_link(p.join(what)).ok();
    let own = Path::new("/proc/self");
    let differs = |what| of(proc, what).is_some_and(|theirs| of(own, what).is_none_or(|ours| ours != theirs));
    (differs("ns/mnt") || differs("root")).then(|| proc.join("root"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;
    use std::os::fd::AsRawFd;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn names_of_links() {
        assert_eq!(link_name("00400000-00401000"), "400000-401000");
        assert_eq!(link_name("7f00-7f10"), "7f00-7f10");
        assert_eq!(link_name("00000000-00001000"), "0-1000");
    }

    #[test]
    fn a_thread_has_the_files_of_its_process() {
        let own = std::process::id();
        // The test itself runs in a thread that is not the first.
        let link = fs::read_link("/proc/thread-self").unwrap();
        let thread = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!((process_of(thread), process_of(own)), (own, own));
    }

    #[test]
    fn own_files_are_found_deleted_ones_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("open");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        fs::remove_file(&path).unwrap();
        let mut files = Files::new();
        held(std::process::id(), &Exclude::default(), &mut files).unwrap();
        let inode = of(&file);
        let found = files[&inode].clone();
        assert_eq!(found.path, PathBuf::from(format!("{} (deleted)", path.display())));
        assert_eq!(run::look(&found.link).unwrap().0, inode);
        let mut others = Files::new();
        let exclude = Exclude::new(&["open".into()]).unwrap();
        held(std::process::id(), &exclude, &mut others).unwrap();
        assert!(!others.contains_key(&inode) && !others.is_empty());
        // The program itself is mapped, and not open.
        assert!(files.contains_key(&run::look(Path::new("/proc/self/exe")).unwrap().0));
    }

    /// Device and inode of an open file, by way of its number.
    fn of(file: &impl AsRawFd) -> (u64, u64) {
        run::look(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap().0
    }

    #[test]
    fn a_number_that_means_another_file_by_now_is_a_file_that_was_closed() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = fs::File::create(dir.path().join("first")).unwrap();
        file.write_all(b"x").unwrap();
        let mut number = OwnedFd::from(file);
        let inode = of(&number);
        let mut files = Files::new();
        held(std::process::id(), &Exclude::default(), &mut files).unwrap();
        let found = files.remove(&inode).unwrap();
        let (totals, row) = asked(inode, found.clone(), Ask::best());
        let row = row.unwrap();
        assert!((totals.files, totals.cached) == (1, 1) && row.open().is_ok());
        let other = fs::File::create(dir.path().join("second")).unwrap();
        for other in [OwnedFd::from(other), OwnedFd::from(UnixStream::pair().unwrap().0)] {
            rustix::io::dup2(&other, &mut number).unwrap();
            let (totals, none) = asked(inode, found.clone(), Ask::best());
            assert_eq!((totals, none), (Totals::of_vanished(), None));
            assert_eq!(row.open().unwrap_err(), Unknown::Vanished, "nor is it evicted, loaded or saved");
        }
    }
}
