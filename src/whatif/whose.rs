//! Whose cache it is that chosen processes use.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::feed;
use super::size;
use crate::exit::Failure;
use crate::only::Only;
use crate::procfs;
use crate::sample::Comm;

/// Whose it is, as far as that is known at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of a cgroup, or of one with a limit that the processes are in; `None`: the machine's.
    Of(Option<String>),
    /// No process has that name, or that user, yet: it may run under any limit.
    Unknown,
}

impl Whose {
    /// Of what is chosen.
    ///
    /// # Errors
    /// Where processes are in several: what is told is of one cache.
    pub(super) fn find(only: &Only) -> Result<Self, Failure> {
        if let Some(group) = only.cgroups.first() {
            return Ok(Self::Of(Some(group.path.clone())));
        }
        if !only.processes.pids.is_empty() {
            return one_cache(only.processes.pids.iter().map(|pid| (*pid, size::cgroup_of(*pid))))
                .map(Self::Of);
        }
        if only.comms.is_empty() && only.users.is_empty() {
            return Ok(Self::Of(None));
        }
        // One that has ended meanwhile has no cgroup.
        let all = running(Path::new("/proc"), only).into_iter();
        let mut all = all.filter_map(|pid| Some((pid, Some(size::cgroup_of(pid)?)))).peekable();
        if all.peek().is_none() {
            return Ok(Self::Unknown);
        }
        one_cache(all).map(Self::Of)
    }

    pub(super) fn group(self) -> Option<String> {
        match self {
            Self::Of(group) => group,
            Self::Unknown => None,
        }
    }
}

/// The processes of these names that run in the name of these users, as the kernel programs choose them: by the name of the
/// process and its real user. We who watch are none.
fn running(proc: &Path, only: &Only) -> Vec<u32> {
    let own = std::process::id();
    let is = |pid: u32| {
        let dir = proc.join(pid.to_string());
        let name = || {
            fs::read(dir.join("comm"))
                .ok()
                .map(|name| Comm::from_bytes(name.strip_suffix(b"\n").unwrap_or(&name)))
        };
        let status = procfs::text(dir.join("status")).unwrap_or_default();
        let value = |key: &str| status.lines().find_map(|l| l.strip_prefix(key))?.split_whitespace().next();
        let user = || value("Uid:")?.parse().ok();
        // Kernel threads have no memory of their own, and are in the root of all cgroups.
        value("VmSize:").is_some()
            && value("State:").is_some_and(|state| state != "Z" && state != "X")
            && (only.comms.is_empty() || name().is_some_and(|name| only.comms.contains(&name)))
            && (only.users.is_empty() || user().is_some_and(|user| only.users.contains(&user)))
    };
    let all = fs::read_dir(proc).into_iter().flatten();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = all.filter(|pid| *pid != own && is(*pid)).collect();
    pids.sort_unstable();
    pids
}

/// The cgroup with a limit that processes are in, by their cgroups; `None`: it is the machine's memory that they share.
fn one_cache(all: impl Iterator<Item = (u32, Option<String>)>) -> Result<Option<String>, Failure> {
    // Of thousands of processes, most are in a few cgroups.
    let mut known = HashMap::new();
    one(all, |group| known.entry(group).or_insert_with_key(|group| feed::limited(group.clone())).clone())
}

fn one(
    all: impl Iterator<Item = (u32, Option<String>)>,
    mut limited: impl FnMut(Option<String>) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let mut groups = all.map(|(pid, group)| (pid, limited(group)));
    let Some((one, group)) = groups.next() else { return Ok(None) };
    let Some((other, _)) = groups.find(|(_, other)| *other != group) else { return Ok(group) };
    let what = format!(
        "processes {one} and {other} do not share a cache, since the memory of their cgroups is limited: '--what-if' tells of one"
    );
    Err(Failure::usage(what).remedy("take processes of one cgroup, or '--cgroup' with that"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn process(proc: &Path, pid: u32, comm: &str, state: &str, user: u32) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("comm"), format!("{comm}\n")).unwrap();
        let memory = if state == "I" { "" } else { "VmSize:\t9 kB\n" };
        let status = format!("Name:\t{comm}\nState:\t{state} (x)\nUid:\t{user}\t0\t0\t0\n{memory}");
        fs::write(dir.join("status"), status).unwrap();
    }

    #[test]
    fn processes_are_found_by_name_and_user() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 7, "postgres", "S", 26);
        process(proc.path(), 8, "postgres", "S", 1000);
        process(proc.path(), 9, "a name of 16 byt", "R", 26);
        process(proc.path(), 10, "postgres", "Z", 26);
        process(proc.path(), 11, "kworker/0:1", "I", 26);
        process(proc.path(), std::process::id(), "postgres", "R", 26);
        fs::create_dir(proc.path().join("sys")).unwrap();
        let of = |comms: &[&str], users: &[u32]| {
            let comms = comms.iter().map(|name| Comm::from(*name)).collect();
            running(proc.path(), &Only { comms, users: users.into(), ..Only::default() })
        };
        assert_eq!((of(&["postgres"], &[]), of(&[], &[26])), (vec![7, 8], vec![7, 9]));
        assert_eq!((of(&["postgres"], &[26]), of(&["a name of 16 byt"], &[])), (vec![7], vec![9]));
        assert!(of(&["mysqld"], &[]).is_empty());
    }

    #[test]
    fn who_does_not_share_a_limit_is_refused() {
        // Below /a there is a limit.
        let limited = |group: Option<String>| group.filter(|path| path.starts_with("/a"));
        let of = |groups: &[&str]| {
            one(groups.iter().zip(1..).map(|(path, pid)| (pid, Some((*path).to_owned()))), limited)
        };
        assert_eq!((of(&["/a", "/a"]).unwrap().as_deref(), of(&["/b", "/c"]).unwrap()), (Some("/a"), None));
        assert!(of(&["/a", "/b"]).is_err() && of(&["/c", "/a"]).is_err() && of(&["/a", "/a/b"]).is_err());
    }

    #[test]
    fn of_who_does_not_run_yet_no_limit_is_known() {
        let only = |comm: &str| Only { comms: vec![Comm::from(comm)], ..Only::default() };
        assert_eq!(Whose::find(&only("\u{1}nobody's\u{1}")).unwrap(), Whose::Unknown);
        assert_eq!(Whose::find(&Only::default()).unwrap(), Whose::Of(None));
    }
}
