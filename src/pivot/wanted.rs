//! What the options of the commands choose, looked up while it is there.

use std::path::Path;

use super::Filter;
use super::System;
use crate::exit::Failure;
use crate::files;
use crate::files::Wanted;
use crate::foreign::Foreign;
use crate::sample::Comm;

/// Names and paths as a person gave them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice<'a> {
    /// `-p`.
    pub pid: Option<u32>,
    /// `--comm`.
    pub comm: Option<&'a str>,
    /// `--cgroup`.
    pub cgroup: Option<&'a str>,
    /// `--file`.
    pub file: Option<&'a Path>,
    /// `--mount`.
    pub mount: Option<&'a Path>,
}

impl Choice<'_> {
    /// The filter for it.
    ///
    /// # Errors
    /// When there is no such cgroup, file or mount: wrong usage, with the remedy.
    pub fn look_up(&self, names: &System) -> Result<Filter, Failure> {
        let mut filter = Filter { pid: self.pid, ..Filter::default() };
        filter.comm = self.comm.map(Comm::from);
        if let Some(path) = self.cgroup {
            let path = names.cgroups.canonical(path);
            if names.cgroups.find(&path).is_none() {
                let remedy = "/proc/PID/cgroup names the cgroup of a process; 'systemd-cgls' lists all";
                return Err(
                    Failure::usage(format!("there is no cgroup {}", Foreign::from(path))).remedy(remedy)
                );
            }
            filter.cgroup = Some(path);
        }
        let missing = |path: &Path, error| {
            Failure::usage(format!("cannot look up {}: {error}", Foreign::from(path)))
                .remedy("name a path that exists, on a file system that is mounted here")
        };
        if let Some(path) = self.file {
            filter.file = Some(Wanted::new(path, &names.mounts).map_err(|e| missing(path, e))?);
        }
        if let Some(path) = self.mount {
            let mount = files::mount_of(path, &names.mounts).map_err(|e| missing(path, e))?;
            if mount.kind == "overlay" {
                let what = format!("{} is on overlayfs, which caches nothing itself", Foreign::from(path));
                let remedy = "name a path on the file system of its layers: 'findmnt -t overlay' lists them";
                return Err(Failure::usage(what).remedy(remedy));
            }
            filter.mount = Some(mount.dev);
        }
        Ok(filter)
    }
}
