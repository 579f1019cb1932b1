//! What processes of a run have open: who is at the other ends of their pipes and connections on this machine, and files
//! whose reads go past the page cache by their nature. Looked at now and then while the run lasts, since nobody knows it
//! afterwards. What was opened and closed in between is not seen.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use crate::files::Mounts;
use crate::procfs;
use crate::text::foreign::Foreign;

mod sockets;

/// Until the first look, and how much longer until each next one.
const FIRST: Duration = Duration::from_millis(300);
const LONGER: u32 = 4;
/// What a look may take: a machine may have very many processes.
const BUDGET: Duration = Duration::from_millis(100);
/// Processes and files that are remembered of a run.
const MOST: usize = 8;

/// Another process that has the other end of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub comm: Foreign,
    /// What is between them.
    pub by: &'static str,
}

/// A file that is read without the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its name.
    pub path: Foreign,
    /// Type of its file system.
    pub fs: String,
    /// Why.
    pub why: &'static str,
}

/// What was seen of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// Other processes, by their ids.
    pub peers: Vec<Peer>,
    /// Files.
    pub past: Vec<Past>,
}

/// When to look next, and what was seen.
#[derive(Debug, Default)]
pub(super) struct Looks {
    next: Option<Duration>,
    seen: Ends,
}

impl Looks {
    /// Whether it is time again, `after` the run began.
    pub(super) fn due(&mut self, after: Duration) -> bool {
        let next = self.next.unwrap_or(FIRST);
        if after < next {
            return false;
        }
        self.next = Some(after * LONGER);
        true
    }

    /// Adds what a look has seen.
    pub(super) fn add(&mut self, seen: Ends) {
        let Ends { peers, past } = &mut self.seen;
        for peer in seen.peers {
            if peers.len() < MOST && peers.iter().all(|p| p.pid != peer.pid) {
                peers.push(peer);
            }
        }
        for file in seen.past {
            if past.len() < MOST && past.iter().all(|p| p.path != file.path) {
                past.push(file);
            }
        }
    }

    pub(super) fn seen(self) -> Ends {
        self.seen
    }
}

/// Pipes, with whether they are read and written, and the sockets at other ends.
#[derive(Default)]
struct Wanted {
    pipes: BTreeMap<String, (bool, bool)>,
    sockets: BTreeSet<String>,
}

/// One look at the processes of a run. Nobody else of it is told as a peer.
pub(super) fn look(ours: &[u32], mounts: &Mounts) -> Ends {
    within(BUDGET, MOST, ours, mounts)
}

/// The same, in so much time, and until so many have been found.
fn within(budget: Duration, most: usize, ours: &[u32], mounts: &Mounts) -> Ends {
    let began = Instant::now();
    let (mut wanted, mut out) = (Wanted::default(), Ends::default());
    for pid in ours {
        for (fd, target) in descriptors(*pid) {
            if began.elapsed() > budget {
                return out;
            }
            let (read, write) = modes(&fd);
            if let Some(target) = pipe(&fd, &target) {
                let (reads, writes) = wanted.pipes.entry(target).or_default();
                (*reads, *writes) = (*reads || read, *writes || write);
            } else if let Some(inode) = sockets::inode(&target) {
                wanted.sockets.extend(sockets::other_end(*pid, inode));
            } else if let Some(past) = past(*pid, &fd, &target, mounts).filter(|_| read) {
                out.past.push(past);
            }
        }
    }
    if wanted.pipes.is_empty() && wanted.sockets.is_empty() {
        return out;
    }
    for pid in processes().filter(|pid| !ours.contains(pid) && *pid != std::process::id()) {
        if began.elapsed() > budget || out.peers.len() >= most {
            break;
        }
        let mut open = descriptors(pid).take_while(|_| began.elapsed() <= budget);
        let by = open.find_map(|(fd, target)| {
            let (read, write) = modes(&fd);
            // The other end of one that is read is written to.
            let ends = wanted.pipes.keys().any(|p| p.starts_with(&target)).then(|| pipe(&fd, &target));
            match ends.flatten().and_then(|pipe| wanted.pipes.get(&pipe)) {
                Some((true, _)) if write => return Some("a pipe that it reads"),
                Some((_, true)) if read => return Some("a pipe that it writes to"),
                _ => {}
            }
            sockets::inode(&target).filter(|inode| wanted.sockets.contains(*inode)).map(|_| "a connection")
        });
        let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let comm = Foreign::from(comm.strip_suffix(b"\n").unwrap_or(&comm));
        out.peers.extend(by.map(|by| Peer { pid, comm, by }));
    }
    out
}

fn processes() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// What a process has open: the link, and where it leads. Of a process that is gone, or not ours to look at, nothing.
/// One after the other: there may be a million of them.
fn descriptors(pid: u32) -> impl Iterator<Item = (PathBuf, String)> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    all.filter_map(|e| Some((e.path(), fs::read_link(e.path()).ok()?.to_string_lossy().into_owned())))
}

/// Whether a descriptor can be read, and written: the mode of its link says so.
fn modes(fd: &Path) -> (bool, bool) {
    let mode = fs::symlink_metadata(fd).map_or(0, |m| m.mode());
    (mode & 0o400 != 0, mode & 0o200 != 0)
}

/// Why an open file is read without the page cache, where that can be proved. No server is asked for it.
fn past(pid: u32, fd: &Path, target: &str, mounts: &Mounts) -> Option<Past> {
    if !target.starts_with('/') {
        return None;
    }
    let number = fd.file_name()?.to_str()?;
    let info = procfs::text(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    let field = |key: &str| info.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    let mount = mounts.by_id(field("mnt_id:")?.parse().ok()?)?;
    if flags & (libc::O_DIRECTORY | libc::O_PATH) != 0 {
        return None;
    }
    let dax =
        || (DAX.contains(&mount.kind.as_str()) && is_dax(fd)).then_some("DAX: its memory is its storage");
    let why = uncached(&mount.kind, &mount.options).or_else(dax)?;
    Some(Past { path: Foreign::from(target), fs: mount.kind.clone(), why })
}

/// File systems that can do DAX, and are of this machine.
const DAX: [&str; 4] = ["ext2", "ext4", "xfs", "erofs"];

/// Network file systems whose mounts say that nothing is cached.
fn uncached(kind: &str, options: &str) -> Option<&'static str> {
    let cache = options.split(',').filter_map(|o| o.strip_prefix("cache=")).next_back();
    match (kind, cache) {
        // It is the default, which is not shown.
        ("9p", None | Some("none" | "0" | "0x0")) => Some("mounted without a cache (cache=none)"),
        ("cifs" | "smb3", Some("none")) => Some("mounted with cache=none"),
        _ => None,
    }
}

fn is_dax(path: &Path) -> bool {
    let dax = u64::try_from(libc::STATX_ATTR_DAX).unwrap_or(0);
    status(path).is_some_and(|s| s.stx_attributes & s.stx_attributes_mask & dax != 0)
}

/// What a pipe is known by: its number, and its path where it has one (another may take that).
fn pipe(fd: &Path, target: &str) -> Option<String> {
    if target.starts_with("pipe:[") {
        return Some(target.into());
    }
    let status = target.starts_with('/').then(|| status(fd))??;
    let fifo = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFIFO;
    let (major, minor) = (status.stx_dev_major, status.stx_dev_minor);
    fifo.then(|| format!("{target} {major}:{minor} {}", status.stx_ino))
}

/// What is known of an open file here, without asking a server.
fn status(path: &Path) -> Option<libc::statx> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: plain data that the call fills.
    let mut out: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_STATX_DONT_SYNC;
    // SAFETY: both pointers are to memory of ours that outlives the call.
    let ret = unsafe {
        libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, libc::STATX_TYPE | libc::STATX_INO, &raw mut out)
    };
    (ret == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    /// With no ends of pipes of whoever runs the tests.
    fn quiet(program: &str) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    #[test]
    fn who_holds_the_other_end_of_a_pipe() {
        // One writes to a pipe that another reads; a third reads it as well, and is no peer of the reader.
        let mut writer = quiet("sleep").arg("60").stdout(Stdio::piped()).spawn().unwrap();
        let end = std::os::fd::OwnedFd::from(writer.stdout.take().unwrap());
        let reads = |end| quiet("sleep").arg("60").stdin(Stdio::from(end)).spawn().unwrap();
        let (mut third, mut reader) = (reads(end.try_clone().unwrap()), reads(end));
        // Whoever runs the tests may have left other pipes open in all of them.
        let peers = |of: &[&std::process::Child]| {
            let ids: Vec<u32> = of.iter().map(|c| c.id()).collect();
            within(Duration::from_secs(60), usize::MAX, &ids, &Mounts::here()).peers
        };
        let has = |of: &[&std::process::Child], who: &std::process::Child| {
            let by =
                if who.id() == writer.id() { "a pipe that it reads" } else { "a pipe that it writes to" };
            peers(of).iter().any(|p| p.pid == who.id() && p.by == by && p.comm == Foreign::from("sleep"))
        };
        assert!(has(&[&reader], &writer) && !has(&[&reader], &third));
        assert!(has(&[&writer], &third) && has(&[&writer], &reader));
        // Of one run they are no others.
        assert!(!has(&[&reader, &writer], &writer) && !has(&[&reader, &writer], &reader));
        for child in [&mut writer, &mut third, &mut reader] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn who_has_a_pipe_with_a_path_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p");
        let make = || assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let open = || fs::File::options().read(true).write(true).open(&path).unwrap();
        make();
        let mut reader = quiet("sleep").arg("60").stdin(open()).spawn().unwrap();
        let mut writer = quiet("sleep").arg("60").stdout(open()).spawn().unwrap();
        fs::remove_file(&path).unwrap();
        make();
        let mut another = quiet("sleep").arg("60").stdout(open()).spawn().unwrap();
        let peers = within(Duration::from_secs(60), usize::MAX, &[reader.id()], &Mounts::here()).peers;
        let has = |who: &std::process::Child| peers.iter().any(|p| p.pid == who.id());
        assert!(has(&writer) && !has(&another), "{peers:?}");
        for child in [&mut writer, &mut another, &mut reader] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn what_is_proved_to_go_past_the_cache() {
        let none = Some("mounted without a cache (cache=none)");
        assert_eq!(uncached("9p", "rw,trans=virtio"), none);
        assert_eq!(uncached("9p", "rw,cache=none,trans=virtio"), none);
        assert_eq!(uncached("9p", "rw,cache=loose"), None);
        assert!(uncached("cifs", "rw,cache=none").is_some());
        for (kind, options) in
            [("cifs", "rw,cache=strict"), ("cifs", "rw"), ("nfs4", "rw"), ("fuse.x", "rw,cache=none")]
        {
            assert_eq!(uncached(kind, options), None, "{kind} {options}");
        }
        assert!(!is_dax(Path::new("/proc/self/exe")));
    }

    #[test]
    fn looks_become_rarer_and_are_bounded() {
        let mut looks = Looks::default();
        let ms = Duration::from_millis;
        let due: Vec<u64> = (1..=100).map(|n| 100 * n).filter(|t| looks.due(ms(*t))).collect();
        assert_eq!(due, [300, 1200, 4800]);
        let peer = |pid| Peer { pid, comm: "x".into(), by: "a pipe" };
        looks.add(Ends { peers: (0..20).chain(0..20).map(peer).collect(), past: Vec::new() });
        assert_eq!(looks.seen().peers.len(), MOST);
    }
}
