//! Processes of the machine as a report needs them: started, waited for, looked at.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::time::Duration;
use std::time::Instant;

use super::asleep::Sleepers;
use super::child;
use super::child::Event;
use super::child::Identity;
use super::child::Reaped;
use super::child::Signals;
use super::data::Usage;
use super::ends;
use super::ends::Ends;
use super::machine::Machine;
use super::machine::ReadLimit;
use crate::files::Mounts;
use crate::procfs;

/// What happens beside the samples: the machine's, or a test's.
pub(super) trait Processes {
    /// The clock.
    fn now(&self) -> Instant;
    /// Starts a command, as this user.
    fn start(&self, command: &[OsString], who: Option<&Identity>) -> io::Result<i32>;
    /// Waits at most so long; see [`Signals::wait`].
    fn wait(&self, time: Duration, child: Option<i32>) -> io::Result<Event>;
    /// The signal that asked for an end so far.
    fn asked(&self) -> io::Result<Option<i32>>;
    /// A child that has ended and has not been waited for.
    fn ended(&self) -> Option<i32>;
    /// Waits for it.
    fn reap(&self, child: i32) -> Option<Reaped>;
    /// Whether a process is there and no zombie.
    fn is_alive(&self, pid: u32) -> bool;
    /// What a living process has used so far, with those that it waited for.
    fn usage(&self, pid: u32) -> Usage;
    /// When a child ended that has been waited for, if somebody looked then.
    fn end_of(&self, _: i32) -> Option<Instant> {
        None
    }
    /// Which threads of processes sleep, and how often they have run so far; `None`: none does, or it is not known.
    fn sleepers(&self, _: &[u32]) -> Option<Sleepers> {
        None
    }
    /// What processes of a run have open.
    fn ends(&self, _: &[u32], _: &Mounts) -> Ends {
        Ends::default()
    }
    /// What the machine says of itself and of the cgroup of a process, or of what is started here; a test's says nothing.
    fn machine(&self, _: Option<u32>) -> Machine {
        Machine::default()
    }
    /// What its cgroups let it read in a second; the same.
    fn read_limits(&self, _: Option<u32>) -> Vec<ReadLimit> {
        Vec::new()
    }
}

impl Processes for Signals {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn start(&self, command: &[OsString], who: Option<&Identity>) -> io::Result<i32> {
        let pid = child::start(command, who, self)?;
        self.note_end(pid);
        Ok(pid)
    }

    fn wait(&self, time: Duration, child: Option<i32>) -> io::Result<Event> {
        Signals::wait(self, time, child)
    }

    fn asked(&self) -> io::Result<Option<i32>> {
        Signals::asked(self)
    }

    fn ended(&self) -> Option<i32> {
        child::ended()
    }

    fn reap(&self, child: i32) -> Option<Reaped> {
        child::reap(child)
    }

    fn is_alive(&self, pid: u32) -> bool {
        is_alive(pid)
    }

    fn usage(&self, pid: u32) -> Usage {
        Usage::read(pid)
    }

    fn end_of(&self, pid: i32) -> Option<Instant> {
        Signals::end_of(self, pid)
    }

    fn sleepers(&self, ours: &[u32]) -> Option<Sleepers> {
        Sleepers::look(ours)
    }

    fn ends(&self, ours: &[u32], mounts: &Mounts) -> Ends {
        ends::look(ours, mounts)
    }

    fn machine(&self, pid: Option<u32>) -> Machine {
        Machine::now(pid)
    }

    fn read_limits(&self, pid: Option<u32>) -> Vec<ReadLimit> {
        ReadLimit::now(pid)
    }
}

/// Whether a process is there and no zombie.
fn is_alive(pid: u32) -> bool {
    let stat = procfs::text(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, t)| t.trim_start().chars().next());
    state.is_some_and(|s| s != 'Z' && s != 'X')
}

/// A process and its descendants. We who watch are none of it: a child of the shell that is watched (`-p $$`).
pub(super) fn family(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let stat = procfs::text(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent =
            stat.rsplit_once(')').and_then(|(_, t)| t.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    descendants(pid, &parents, std::process::id())
}

/// A process and its descendants, by pairs of process and parent, without one of these and its own.
fn descendants(pid: u32, parents: &[(u32, u32)], without: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        let children = parents.iter().filter(|(child, parent)| *parent == member && *child != without);
        family.extend(children.map(|(child, _)| *child));
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_family_has_all_generations() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while family(child.id()).len() < 2 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let all = family(child.id());
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.iter().all(|p| is_alive(*p)));
        for pid in all {
            // SAFETY: no memory is involved; both are children of this test.
            unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) };
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn a_name_that_is_no_utf8_is_no_end() {
        let dir = tempfile::tempdir().unwrap();
        // As the kernel leaves it of a longer one, cut in the middle of a letter.
        let sleeper = dir.path().join(OsStr::from_bytes(b"\xd1\x81\xd0"));
        std::os::unix::fs::symlink("/bin/sh", &sleeper).unwrap();
        let mut child = Command::new(&sleeper).args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let named = || {
            let comm = std::fs::read(format!("/proc/{}/comm", child.id())).unwrap();
            comm == b"\xd1\x81\xd0\n" && family(child.id()).len() == 2
        };
        while !named() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(named() && is_alive(child.id()));
        for pid in family(child.id()) {
            // SAFETY: no memory is involved; both are children of this test.
            unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) };
        }
        child.wait().unwrap();
    }

    #[test]
    fn who_watches_is_no_child_of_the_shell_that_is_watched() {
        let parents = [(20, 10), (30, 10), (31, 30), (21, 20), (40, 1)];
        assert_eq!(descendants(10, &parents, 30), [10, 20, 21]);
        assert_eq!(descendants(10, &parents, 99), [10, 20, 30, 21, 31]);
    }
}
