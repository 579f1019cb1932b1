//! What the commands that count have in common, whoever chose it: plain values, no command line.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::exit::Failure;
use crate::only::Only;
use crate::pivot::By;
use crate::pivot::Choice;
use crate::pivot::Filter;
use crate::pivot::System;
use crate::pivot::User;
use crate::pivot::in_order;
use crate::plan::Engine;
use crate::plan::Wants;
use crate::record::writer::shards;
use crate::sample::Comm;
use crate::session;
use crate::text::foreign::Foreign;
use crate::text::infile;
use crate::text::numbers::Unit;
use crate::wait::Processes;

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

/// Whether a recording, or a directory of them, is there and may be read: what is wrong with what it says is found as it is read.
///
/// # Errors
/// When it may not be read (1), or a directory has none (2); with the remedy.
pub fn replayable(path: &Path) -> Result<(), Failure> {
    let refused = |path: &Path, e: &io::Error| {
        let failure = Failure::failed(format!("cannot read {}: {e}", Foreign::from(path)));
        // Who records is root, and what was seen of others is for nobody else unless they say so.
        failure.remedy(
            "replay it as the user who recorded it (root: with sudo), or have that one let others read it (chmod)",
        )
    };
    let denied = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    if !path.is_dir() {
        return match infile::open(path) {
            Err(e) if denied(&e) => Err(refused(path, &e)),
            _ => Ok(()),
        };
    }
    let recordings = match shards(path) {
        Err(e) if denied(&e) => return Err(refused(path, &e)),
        Err(_) => return Ok(()),
        Ok(all) => all,
    };
    // One that can be read does: the others are left out, and named.
    let mut errors = Vec::new();
    for recording in &recordings {
        match infile::open(recording) {
            Err(e) if denied(&e) => errors.push(refused(recording, &e)),
            _ => return Ok(()),
        }
    }
    Err(errors.into_iter().next().unwrap_or_else(|| {
        Failure::usage(format!("there is no recording in {}", Foreign::from(path)))
            .remedy("name a file of 'cachestat --record FILE', or the directory of 'cachetopd --record DIR'")
    }))
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

/// What counts: all of these must hold, of several of a kind any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// These processes.
    pub pids: Vec<u32>,
    /// Processes with these command names.
    pub comms: Vec<String>,
    /// What is done in the name of these users: names or numbers.
    pub users: Vec<String>,
    /// Processes of these cgroups and those below them.
    pub cgroups: Vec<String>,
    /// This file.
    pub file: Option<PathBuf>,
    /// Files of the file system that has this path.
    pub mount: Option<PathBuf>,
}

/// So many of a kind are named where people read; JSON has all.
const NAMED: usize = 4;

impl Chosen {
    /// Whether only a part of what happens counts: sums are made of rows then.
    #[must_use]
    pub fn any(&self) -> bool {
        self.by_process() || !self.cgroups.is_empty() || self.by_file()
    }

    /// Whether only some processes count, whichever cgroup they are in.
    #[must_use]
    pub fn by_process(&self) -> bool {
        !(self.pids.is_empty() && self.comms.is_empty() && self.users.is_empty())
    }

    /// Whether only some files count.
    #[must_use]
    pub const fn by_file(&self) -> bool {
        self.file.is_some() || self.mount.is_some()
    }

    /// The processes, each once, from the lowest number on.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        in_order(&self.pids)
    }

    /// Finds the processes, for as long as they live.
    ///
    /// # Errors
    /// Wrong usage where one of them is not there, or is a thread.
    pub fn watch(&self) -> Result<Processes, Failure> {
        Processes::open(&self.pids())
    }

    /// The filter for it, and what the kernel programs get of it; looked up while it is there. `seen`: when the processes were
    /// alive.
    ///
    /// # Errors
    /// Wrong usage where there is no such user, cgroup, file or mount.
    pub fn look_up(&self, names: &System, seen: u64) -> Result<(Filter, Only), Failure> {
        let Self { pids, comms, users, cgroups, file, mount } = self;
        let (file, mount) = (file.as_deref(), mount.as_deref());
        Choice { pids, seen, comms, users, cgroups, file, mount }.look_up(names)
    }

    /// The filter for it in a recording, of which only names are left.
    #[must_use]
    pub fn recorded(&self) -> Filter {
        let absolute = |path: &PathBuf| {
            let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
            path.ok().map(|p| p.to_string_lossy().into_owned())
        };
        Filter {
            pids: self.pids(),
            comms: self.comms.iter().map(|name| Comm::from(name.as_str())).collect(),
            users: self.users.iter().cloned().map(User::Named).collect(),
            cgroups: self.cgroups.clone(),
            path: self.file.as_ref().and_then(absolute),
            below: self.mount.as_ref().and_then(absolute),
            ..Filter::default()
        }
    }

    /// What is worth a word although it may be meant: a name with a comma that no process has now, which is taken for one name.
    /// Elsewhere such a name is a list.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let lists: Vec<&str> = self.comms.iter().map(String::as_str).filter(|n| n.contains(',')).collect();
        if lists.is_empty() {
            return None;
        }
        let of =
            |entry: std::io::Result<std::fs::DirEntry>| std::fs::read(entry.ok()?.path().join("comm")).ok();
        let comm = |bytes: Vec<u8>| Comm::from_bytes(bytes.trim_ascii_end());
        let there: Vec<Comm> = std::fs::read_dir("/proc").ok()?.filter_map(of).map(comm).collect();
        let name = Foreign::from(lists.into_iter().find(|name| !there.contains(&Comm::from(*name)))?);
        Some(format!(
            "no process is called '{name}' now: --comm takes one name, whose commas are part of it; it may be given several times"
        ))
    }

    /// In words; empty for everything.
    #[must_use]
    pub fn words(&self) -> String {
        self.several(usize::MAX)
    }

    /// The same where people read: of many of a kind only some are named.
    #[must_use]
    pub fn brief(&self) -> String {
        self.several(NAMED)
    }

    /// All of it for programs, or what people read.
    #[must_use]
    pub fn told(&self, to_programs: bool) -> String {
        if to_programs { self.words() } else { self.brief() }
    }

    /// Who has ended, in words.
    #[must_use]
    pub fn who_ended(&self) -> &'static str {
        if self.pids.len() > 1 { "all processes ended" } else { "the process ended" }
    }

    fn several(&self, most: usize) -> String {
        let foreign =
            |names: &[String]| names.iter().map(|n| Foreign::from(n.as_str()).to_string()).collect();
        let kinds: [(&str, Vec<String>); 4] = [
            ("process", self.pids().iter().map(ToString::to_string).collect()),
            ("command", foreign(&self.comms)),
            ("user", foreign(&self.users)),
            ("cgroup", foreign(&self.cgroups)),
        ];
        let several = |(kind, names): &(&str, Vec<String>)| Some(format!("{kind} {}", any_of(names, most)?));
        let mut parts: Vec<String> = kinds.iter().filter_map(several).collect();
        parts.extend(self.file.as_deref().map(|p| format!("file {}", Foreign::from(p))));
        parts.extend(self.mount.as_deref().map(|p| format!("mount of {}", Foreign::from(p))));
        parts.join(", ")
    }

    /// That the processes have ended, in words; `None`: none were asked for.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        match self.pids().as_slice() {
            [] => None,
            [pid] => Some(format!("process {pid} has ended")),
            [_, _] => Some("both processes have ended".into()),
            pids => Some(format!("all {} processes have ended", pids.len())),
        }
    }
}

/// "a", "a or b", "a, b or 3 others"; `None`: there are none.
fn any_of(names: &[String], most: usize) -> Option<String> {
    let more = names.len().saturating_sub(most);
    // One of which only the number would be told might as well be named.
    let (named, others) = if more > 1 {
        (names.get(..most)?, format!("{more} others"))
    } else {
        let (last, first) = names.split_last()?;
        (first, last.clone())
    };
    Some(if named.is_empty() { others } else { format!("{} or {others}", named.join(", ")) })
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
        let told = |name: &str| Chosen { comms: vec![name.into()], ..Chosen::default() }.notice();
        assert_eq!(told("nobody-has-it"), None, "it may come yet");
        let text = told("bash,cat\x1b").unwrap_or_default();
        assert!(text.starts_with("no process is called 'bash,cat\\x1b' now"), "{text}");
        assert_eq!(Chosen::default().notice(), None);
    }

    #[test]
    fn a_directory_without_a_recording_says_what_to_name() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let refused = replayable(dir.path()).map_err(|e| (e.message, e.remedy.unwrap_or_default()));
        let Err((message, remedy)) = refused else { panic!("there is none") };
        assert!(message.starts_with("there is no recording in "), "{message}");
        assert!(remedy.contains("--record DIR"), "{remedy}");
        // What is not there, or is no recording, is told by who reads it.
        std::fs::write(dir.path().join("x"), "")?;
        assert_eq!(replayable(&dir.path().join("x")), Ok(()));
        assert_eq!(replayable(&dir.path().join("y")), Ok(()));
        Ok(())
    }

    #[test]
    fn several_of_a_kind_are_told_in_words() {
        let mut chosen = Chosen { pids: vec![9], ..Chosen::default() };
        assert_eq!(
            (chosen.words(), chosen.ended()),
            ("process 9".into(), Some("process 9 has ended".into()))
        );
        chosen.pids = vec![9, 7, 9];
        assert_eq!((chosen.words(), chosen.pids()), ("process 7 or 9".into(), vec![7, 9]));
        assert_eq!(chosen.ended().as_deref(), Some("both processes have ended"));
        chosen.comms = vec!["a,b".into(), "c\x1b".into(), "d".into()];
        chosen.users = vec!["root".into()];
        chosen.cgroups = vec!["/".into()];
        assert_eq!(chosen.words(), "process 7 or 9, command a,b, c\\x1b or d, user root, cgroup /");
        let brief = |n| Chosen { pids: (1..=n).collect(), ..Chosen::default() }.brief();
        assert_eq!(brief(5), "process 1, 2, 3, 4 or 5", "another one is as short as its number");
        assert_eq!(brief(64), "process 1, 2, 3, 4 or 60 others");
        assert_eq!((Chosen::default().words(), Chosen::default().ended()), (String::new(), None));
    }
}
