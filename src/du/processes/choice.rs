//! Which processes are looked into.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use rustix::io::Errno;

use super::container;
use crate::cgroup::Hierarchy;
use crate::du::options::Options;
use crate::du::problems::Problems;
use crate::du::problems::errno;
use crate::exit::Failure;
use crate::names;
use crate::procfs;

/// The processes that the options choose; each of the options must hold.
pub(super) fn processes(
    options: &Options,
    problems: &Problems,
    unread: &mut u64,
) -> Result<Vec<u32>, Failure> {
    let wanted = &options.processes;
    let there = listed()?;
    for pid in &wanted.pid {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(Failure::usage(format!("there is no process {pid}"))
                .remedy("'ps -e' lists the processes that there are"));
        }
    }
    let named: Vec<u32> = wanted.pid.iter().map(|pid| process_of(*pid)).collect();
    let mut of_cgroups = HashSet::new();
    for path in &wanted.cgroup {
        of_cgroups.extend(members(path, problems, unread)?);
    }
    let users: Vec<u32> = wanted.user.iter().map(|user| names::uid_of(user)).collect::<Result<_, _>>()?;
    let mut pids: Vec<u32> = there
        .into_iter()
        .filter(|pid| named.is_empty() || named.contains(pid))
        .filter(|pid| wanted.cgroup.is_empty() || of_cgroups.contains(pid))
        .filter(|pid| users.is_empty() || user_of(*pid).is_some_and(|uid| users.contains(&uid)))
        .filter(|pid| wanted.comm.is_empty() || wanted.comm.iter().any(|name| comm(*pid, name)))
        .collect();
    if !wanted.container.is_empty() {
        pids = container::members(&wanted.container, &pids)?;
    }
    pids.sort_unstable();
    // Our own files are of interest to nobody who does not ask for this process.
    let own = std::process::id();
    pids.retain(|pid| *pid != own || named.contains(pid));
    if pids.is_empty() && !wanted.comm.is_empty() {
        return Err(Failure::usage("no process has that name and what else was requested")
            .remedy("'ps -e -o comm' lists the names; the kernel keeps their first 15 bytes"));
    }
    Ok(pids)
}

/// The processes that there are. Where nothing is mounted on /proc there is none, not even this one, and nobody would have
/// any files.
fn listed() -> Result<Vec<u32>, Failure> {
    let all = fs::read_dir("/proc").map_err(|e| Failure::failed(format!("cannot read /proc: {e}")))?;
    let pids: Vec<u32> = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    if pids.is_empty() {
        return Err(Failure::failed("/proc lists no process").remedy("mount it: mount -t proc proc /proc"));
    }
    Ok(pids)
}

/// The real user of a process.
fn user_of(pid: u32) -> Option<u32> {
    let status = procfs::text(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

/// The process of a thread: /proc lists only processes, though it has a directory for each thread.
fn process_of(pid: u32) -> u32 {
    let status = procfs::text(format!("/proc/{pid}/status")).unwrap_or_default();
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
    let info = procfs::mounts().unwrap_or_default();
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_thread_has_the_files_of_its_process() {
        let own = std::process::id();
        // The test itself runs in a thread that is not the first.
        let link = fs::read_link("/proc/thread-self").unwrap();
        let thread = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!((process_of(thread), process_of(own)), (own, own));
        assert_eq!(user_of(own), Some(rustix::process::getuid().as_raw()));
    }
}
