//! What the commands that count have in common, whoever chose it: plain values, no command line.

use std::path::PathBuf;

use crate::exit::Failure;
use crate::only::Only;
use crate::pivot::By;
use crate::pivot::Choice;
use crate::pivot::Filter;
use crate::pivot::System;
use crate::plan::Engine;
use crate::plan::Wants;
use crate::sample::Comm;
use crate::session;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;

/// How rows are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A table, for people.
    #[default]
    Text,
    /// JSON objects, one a line.
    Json,
    /// Comma-separated values.
    Csv,
}

/// One of a few values, each with the name that people write.
pub trait OneOf: Copy + 'static {
    /// All of them, in the order in which they are listed.
    const ALL: &'static [Self];

    /// Its name.
    fn name(self) -> &'static str;

    /// The one of that name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

impl OneOf for Unit {
    const ALL: &'static [Self] = &[Unit::Pages, Unit::Bytes];

    fn name(self) -> &'static str {
        match self {
            Unit::Pages => "pages",
            Unit::Bytes => "bytes",
        }
    }
}

impl OneOf for By {
    const ALL: &'static [Self] = &[
        By::Process,
        By::Thread,
        By::Comm,
        By::User,
        By::Cgroup,
        By::File,
        By::Mount,
        By::Device,
        By::Evictor,
    ];

    fn name(self) -> &'static str {
        match self {
            By::Comm => "comm",
            by => by.singular(),
        }
    }
}

/// What counts: all of these must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// This process.
    pub pid: Option<u32>,
    /// Processes with this command name.
    pub comm: Option<String>,
    /// Processes of this cgroup and those below it.
    pub cgroup: Option<String>,
    /// This file.
    pub file: Option<PathBuf>,
    /// Files of the file system that has this path.
    pub mount: Option<PathBuf>,
}

impl Chosen {
    /// Whether only a part of what happens counts: sums are made of rows then.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.pid.is_some() || self.comm.is_some() || self.cgroup.is_some() || self.by_file()
    }

    /// Whether only some files count.
    #[must_use]
    pub const fn by_file(&self) -> bool {
        self.file.is_some() || self.mount.is_some()
    }

    /// The filter for it, and what the kernel programs get of it; looked up while it is there.
    ///
    /// # Errors
    /// Wrong usage where there is no such cgroup, file or mount.
    pub fn look_up(&self, names: &System) -> Result<(Filter, Only), Failure> {
        let (comm, cgroup) = (self.comm.as_deref(), self.cgroup.as_deref());
        let (file, mount) = (self.file.as_deref(), self.mount.as_deref());
        Choice { pid: self.pid, comm, cgroup, file, mount }.look_up(names)
    }

    /// The filter for it in a recording, of which only names are left.
    #[must_use]
    pub fn recorded(&self) -> Filter {
        let absolute = |path: &PathBuf| {
            let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
            path.ok().map(|p| p.to_string_lossy().into_owned())
        };
        Filter {
            pid: self.pid,
            comm: self.comm.as_deref().map(Comm::from),
            cgroup: self.cgroup.clone(),
            path: self.file.as_ref().and_then(absolute),
            below: self.mount.as_ref().and_then(absolute),
            ..Filter::default()
        }
    }

    /// What is worth a word although it may be meant: a name with a comma that no process has now, which is taken for one name.
    /// Elsewhere such a name is a list.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let name = self.comm.as_deref().filter(|name| name.contains(','))?;
        let wanted = Comm::from(name);
        let of =
            |entry: std::io::Result<std::fs::DirEntry>| std::fs::read(entry.ok()?.path().join("comm")).ok();
        let met = |comm: Vec<u8>| Comm::from_bytes(comm.trim_ascii_end()) == wanted;
        let there = std::fs::read_dir("/proc").ok()?.filter_map(of).any(met);
        let name = Foreign::from(name);
        (!there).then(|| {
            format!("no process is called '{name}' now: --comm takes one name, whose commas are part of it")
        })
    }

    /// In words; empty for everything.
    #[must_use]
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.pid.map(|p| format!("process {p}")));
        parts.extend(self.comm.as_deref().map(|c| format!("command {}", Foreign::from(c))));
        parts.extend(self.cgroup.as_deref().map(|c| format!("cgroup {}", Foreign::from(c))));
        parts.extend(self.file.as_deref().map(|p| format!("file {}", Foreign::from(p))));
        parts.extend(self.mount.as_deref().map(|p| format!("mount of {}", Foreign::from(p))));
        parts.join(", ")
    }
}

/// How it is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counting {
    /// The engine; `None`: the exact one, or the classic one where that cannot count.
    pub engine: Option<Engine>,
    /// Count the monitor's own process, too.
    pub include_self: bool,
    /// Room for so many threads in the kernel; `None`: the default.
    pub table_size: Option<u32>,
    /// Room for so many files of processes in the kernel; `None`: the default.
    pub file_table: Option<u32>,
    /// Only print how it is counted.
    pub explain: bool,
    /// Programs to be taken as refused by the kernel. For tests.
    pub refuse: Vec<String>,
}

impl Counting {
    /// What a session needs to know for it.
    #[must_use]
    pub fn session(&self, wants: Wants, only: Only) -> session::Options {
        let default = session::Options::default();
        session::Options {
            include_self: self.include_self,
            table: self.table_size.unwrap_or(default.table),
            files: self.file_table.unwrap_or(default.files),
            wants,
            only,
            refuse: self.refuse.clone(),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_is_told_from_a_name() {
        let told = |name: &str| Chosen { comm: Some(name.into()), ..Chosen::default() }.notice();
        assert_eq!(told("nobody-has-it"), None, "it may come yet");
        let text = told("bash,cat\x1b").unwrap_or_default();
        assert!(text.starts_with("no process is called 'bash,cat\\x1b' now"), "{text}");
        assert_eq!(Chosen::default().notice(), None);
    }
}
