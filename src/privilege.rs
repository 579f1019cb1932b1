//! Giving privilege back: what each command holds while it runs, and why.
//!
//! To attach takes more than to run. Once a command counts, it gives back what it does not need any more; what it keeps is
//! in [`Role::holds`], each with its reason, and in `docs/guide/privileges.md`. Commands that start nothing are *sealed* on top:
//! no program that they run could gain anything, no other kernel program can be loaded, and nothing can be written but what
//! they are to write. Those that run what the user wants to run are not, or `sudo` would not work in there.

mod calls;
mod capabilities;
mod files;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub use capabilities::Capability;
pub use capabilities::keep;

use crate::exit::Failure;
use Capability::Bpf;
use Capability::CheckpointRestore;
use Capability::Chown;
use Capability::DacOverride;
use Capability::DacReadSearch;
use Capability::Fowner;
use Capability::Kill;
use Capability::Perfmon;
use Capability::Setgid;
use Capability::Setuid;
use Capability::SysAdmin;
use Capability::SysPtrace;

/// What a process does once everything that needs much privilege is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `cachestat INTERVAL`, `--what-if`, `--working-set`, `cachetop -b`, the thread of `cachetop` that counts.
    Count,
    /// `--replay`: reads what was recorded.
    Replay,
    /// `cachetopd`: counts, records, answers.
    Daemon,
    /// `cachestat -- COMMAND`: runs it as its user would, and explains it.
    Command {
        /// Caches are emptied.
        cold: bool,
        /// Files are written at the end.
        writes: bool,
    },
    /// `cachestat -p PID --for`: looks at a process of others.
    Process {
        /// Files are written at the end.
        writes: bool,
    },
    /// `cachetop` on a terminal, the threads that look into the cache: of a file, what of it is cached.
    Look,
    /// `cachetop` on a terminal, all other threads: draw, read keys, keep settings, run what is to be run next.
    Screen,
    /// `cachedu`: no kernel program at all.
    Files {
        /// A file is written.
        writes: bool,
    },
}

/// A capability, and what it is for.
pub type Held = (Capability, &'static str);

const TABLES: Held = (Bpf, "reading tables, which kernels before 5.18 refuse to others");
const RUN: Held = (Perfmon, "running the programs that settle what has ended");
const HANDLES: Held = (DacReadSearch, "names of cgroups, by open_by_handle_at(2); tracefs");
const READ: Held =
    (DacReadSearch, "names of cgroups; opening files of others, to ask what is cached of them");
const OWNER: Held = (Fowner, "cachestat(2) and mincore(2) tell of a file only to its owner");
const LOOK: Held = (SysPtrace, "/proc/PID/fd, io, maps and root of others");
const HIDDEN: Held = (SysPtrace, "/proc is mounted with hidepid: command lines of others");
const WRITE: [Held; 2] = [
    (DacOverride, "files that are written at the end, in a directory of somebody else"),
    (Chown, "they belong to the user who called sudo"),
];

/// Whether a directory belongs to another user than this process has.
fn is_others(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|m| m.uid() != rustix::process::geteuid().as_raw())
}

impl Role {
    /// What it holds, each with its reason.
    #[must_use]
    pub fn holds(self) -> Vec<Held> {
        let written = |writes: bool| WRITE.into_iter().filter(move |_| writes);
        let sudo = crate::text::outfile::sudo().is_some();
        let mut held = match self {
            Role::Count | Role::Daemon => vec![TABLES, RUN, HANDLES],
            Role::Replay => vec![(DacReadSearch, "recordings are readable for their owner alone")],
            Role::Command { .. } | Role::Process { .. } => vec![TABLES, RUN, READ, OWNER, LOOK],
            Role::Look => {
                vec![(DacReadSearch, "opening files of others, to ask what is cached of them"), OWNER]
            }
            Role::Screen => Vec::new(),
            Role::Files { .. } => vec![
                (DacReadSearch, "directories and files of others"),
                OWNER,
                LOOK,
                if capabilities::known(CheckpointRestore) {
                    (CheckpointRestore, "/proc/PID/map_files: files that are mapped, not open")
                } else {
                    (SysAdmin, "/proc/PID/map_files: files that are mapped, not open")
                },
            ],
        };
        match self {
            Role::Command { cold, writes } => {
                held.push((Kill, "signals are passed on to the command, whoever it has become"));
                if sudo {
                    held.push((Setuid, "the command runs as the user who called sudo"));
                    held.push((Setgid, "and in the groups of that user"));
                }
                if cold {
                    held.push((
                        SysAdmin,
                        "ext4 puts in place what its journals hold, before caches are emptied",
                    ));
                }
                held.extend(written(writes));
            }
            Role::Process { writes } | Role::Files { writes } => held.extend(written(writes)),
            Role::Screen => held.extend(written(sudo)),
            Role::Count | Role::Daemon | Role::Replay | Role::Look => {}
        }
        if hides() && !matches!(self, Role::Replay | Role::Look) && held.iter().all(|(c, _)| *c != SysPtrace)
        {
            held.push(HIDDEN);
        }
        held
    }

    /// Whether it starts no program for the user.
    const fn sealed(self) -> bool {
        !matches!(self, Role::Command { .. } | Role::Screen)
    }

    /// Whether it can be kept from writing. A process that is kept so may not look into others any more (`/proc/PID/fd`).
    fn confined(self) -> bool {
        matches!(self, Role::Count | Role::Daemon | Role::Replay | Role::Look) && !hides()
    }

    /// Gives back what it does not hold. It counts for this thread and those that it begins. `writes`: the directories in which
    /// it makes and removes files.
    ///
    /// # Errors
    /// When the kernel refuses to take a capability back. What it does not know is told in the log.
    pub fn take(self, writes: &[&Path]) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::failed(format!("cannot give privileges back: {e}"));
        let mut held: Vec<Capability> = self.holds().into_iter().map(|(c, _)| c).collect();
        let makes = matches!(self, Role::Count | Role::Daemon | Role::Replay);
        // What these make is to belong to whoever called sudo.
        let gives = matches!(self, Role::Count | Role::Replay) && crate::text::outfile::sudo().is_some();
        if makes && writes.iter().any(|at| gives || is_others(at)) {
            // Or root could make no file there any more: a ring would neither go on nor be bounded.
            held.extend(WRITE.iter().map(|(c, _)| *c));
        }
        if !self.sealed() {
            let whole = matches!(self, Role::Command { .. });
            return capabilities::lower(&held, whole).map_err(failed);
        }
        keep(&held).map_err(failed)?;
        if self.confined() {
            match files::confine(writes) {
                Ok(true) => {}
                Ok(false) => log::info!("Landlock does part of what it is asked for: an older kernel"),
                Err(e) => log::warn!("files are not bounded by Landlock: {e}"),
            }
        }
        if let Err(e) = calls::refuse(self.programs()) {
            log::warn!("system calls are not bounded by seccomp: {e}");
        }
        Ok(())
    }

    /// Whether it uses kernel programs that are loaded already.
    const fn programs(self) -> bool {
        !matches!(self, Role::Files { .. } | Role::Replay | Role::Look)
    }

    /// What it holds while it runs, for `--explain`.
    #[must_use]
    pub fn explain(self) -> String {
        let mut out =
            String::from("\nWhat it holds while it runs, if it has it (docs/guide/privileges.md):\n");
        for (capability, why) in self.holds() {
            out.push_str(&format!("  {:<24} {why}\n", capability.name()));
        }
        let mut line = |name: &str, text: &str| out.push_str(&format!("  {name:<24} {text}\n"));
        if !self.sealed() {
            line(
                "no_new_privs",
                "no: what it runs for its user is run as ever, and so without Landlock and seccomp",
            );
            if matches!(self, Role::Command { .. }) && capabilities::is_privileged_root() {
                line(
                    "not in force",
                    "all others, which root's command has: one that gains them dumps no core",
                );
            }
            return out;
        }
        line("no_new_privs", "yes, and the same bounding set");
        match (self.confined(), files::version()) {
            (true, Ok(version)) => {
                line("Landlock", &format!("version {version}: writes only where it records"))
            }
            (true, Err(e)) => line("Landlock", &format!("no: {e}")),
            (false, _) => line("Landlock", "no: it would close /proc/PID of others"),
        }
        match calls::available() {
            Ok(()) => line("seccomp", "no new kernel programs, no execve, no mounts, and their like"),
            Err(e) => line("seccomp", &format!("no: {e}")),
        }
        out
    }
}

/// Whether `/proc` hides the processes of others from whoever may not look into them.
fn hides() -> bool {
    let mounts = crate::procfs::mounts().unwrap_or_default();
    mounts.lines().any(hides_processes)
}

fn hides_processes(line: &str) -> bool {
    let Some((mount, system)) = line.split_once(" - ") else { return false };
    let option = |o: &str| o.strip_prefix("hidepid=").is_some_and(|how| !matches!(how, "0" | "off"));
    mount.split(' ').nth(4) == Some("/proc")
        && system.starts_with("proc ")
        && system.split([' ', ',']).any(option)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hidden_processes_are_known_by_the_mount() {
        let line = |at: &str, kind: &str, options: &str| {
            format!("22 1 0:21 / {at} rw,nosuid shared:5 - {kind} proc rw{options}")
        };
        assert!(hides_processes(&line("/proc", "proc", ",gid=4,hidepid=2")));
        assert!(hides_processes(&line("/proc", "proc", ",hidepid=invisible")));
        for other in [
            line("/proc", "proc", ""),
            line("/proc", "proc", ",hidepid=0"),
            line("/proc", "proc", ",hidepid=off"),
            line("/x/proc", "proc", ",hidepid=2"),
            line("/proc", "tmpfs", ",hidepid=2"),
            String::new(),
        ] {
            assert!(!hides_processes(&other), "{other}");
        }
    }

    #[test]
    fn nothing_is_held_twice_and_the_documentation_has_it() {
        let guide = std::fs::read_to_string("docs/guide/privileges.md").unwrap();
        let (cold, writes) = (true, true);
        for role in [
            Role::Count,
            Role::Daemon,
            Role::Command { cold, writes },
            Role::Process { writes },
            Role::Replay,
            Role::Screen,
            Role::Files { writes },
        ] {
            let held = role.holds();
            for (i, (capability, why)) in held.iter().enumerate() {
                assert!(held[..i].iter().all(|(c, _)| c != capability), "{role:?}: {capability:?}");
                assert!(!why.is_empty());
                assert!(guide.contains(capability.name()), "{}", capability.name());
            }
            let text = role.explain();
            assert!(held.iter().all(|(c, _)| text.contains(c.name())), "{text}");
        }
    }
}
