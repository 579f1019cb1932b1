//! What the options of the commands choose, looked up while it is there.

use std::path::Path;

use super::filter::Filter;
use super::filter::User;
use crate::exit::Failure;
use crate::files;
use crate::files::Wanted;
use crate::names;
use crate::names::System;
use crate::only::Files;
use crate::only::Group;
use crate::only::Only;
use crate::only::Processes;
use crate::sample::Comm;
use crate::text::foreign::Foreign;

/// Names and paths as a person gave them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice<'a> {
    /// `-p`.
    pub pids: &'a [u32],
    /// When these were seen alive.
    pub seen: u64,
    /// `--comm`.
    pub comms: &'a [String],
    /// `--user`.
    pub users: &'a [String],
    /// `--cgroup`.
    pub cgroups: &'a [String],
    /// `--file`.
    pub file: Option<&'a Path>,
    /// `--mount`.
    pub mount: Option<&'a Path>,
}

impl Choice<'_> {
    /// The filter for it, and what the kernel programs get.
    ///
    /// # Errors
    /// When there is no such user, cgroup, file or mount: wrong usage, with the remedy.
    pub fn look_up(&self, names: &System) -> Result<(Filter, Only), Failure> {
        let mut filter = Filter { pids: in_order(self.pids), ..Filter::default() };
        filter.seen = (!self.pids.is_empty()).then_some(self.seen);
        filter.comms = self.comms.iter().map(|name| Comm::from(name.as_str())).collect();
        let processes = Processes { pids: filter.pids.clone(), seen: self.seen };
        let mut only = Only { processes, comms: filter.comms.clone(), ..Only::default() };
        for user in self.users {
            let uid = names::uid_of(user)?;
            only.users.push(uid);
            filter.users.push(User::Id(uid));
        }
        for path in self.cgroups {
            let path = names.cgroups.canonical(path);
            let Some(id) = names.cgroups.find(&path) else {
                let remedy = "/proc/PID/cgroup names the cgroup of a process; 'systemd-cgls' lists all";
                return Err(
                    Failure::usage(format!("there is no cgroup {}", Foreign::from(path))).remedy(remedy)
                );
            };
            // Two that are one would be written down twice.
            if only.cgroups.iter().all(|group| group.path != path) {
                only.cgroups.push(Group { id, path: path.clone() });
                filter.cgroups.push(path);
            }
        }
        let missing = |path: &Path, error| {
            Failure::usage(format!("cannot look up {}: {error}", Foreign::from(path)))
                .remedy("name a path that exists, on a file system that is mounted here")
        };
        if let Some(path) = self.file {
            let wanted = Wanted::new(path, &names.mounts).map_err(|e| missing(path, e))?;
            only.files = Some(match wanted.block {
                Some(_) => Files::Device(wanted.path.clone()),
                None => Files::One { path: wanted.path.clone(), name: wanted.name.clone() },
            });
            filter.file = Some(wanted);
        }
        if let Some(path) = self.mount {
            let mount = files::mount_of(path, &names.mounts).map_err(|e| missing(path, e))?;
            if mount.kind == "overlay" {
                let what = format!("{} is on overlayfs, which caches nothing itself", Foreign::from(path));
                let remedy = "name a path on the file system of its layers: 'findmnt -t overlay' lists them";
                return Err(Failure::usage(what).remedy(remedy));
            }
            // Of a file on this file system and the file system, the file says more.
            let system = || Files::System(path.into());
            only.files = only.files.or_else(|| Some(system()));
            filter.mount = Some(mount.dev);
        }
        filter.decided = !filter.is_empty();
        Ok((filter, only))
    }
}

/// Numbers from the lowest on, each once.
pub(crate) fn in_order(pids: &[u32]) -> Vec<u32> {
    let mut pids = pids.to_vec();
    pids.sort_unstable();
    pids.dedup();
    pids
}
