//! What counts of all that a sample has.

use super::by::By;
use super::item::Item;
use crate::files::Dev;
use crate::files::Wanted;
use crate::names::Names;
use crate::sample::Comm;
use crate::sample::Counter;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// By its number.
    Id(u32),
    /// Of a recording: by its number in digits, or as it was called then.
    Named(String),
}

impl User {
    fn is(&self, uid: u32, names: &mut dyn Names) -> bool {
        match self {
            Self::Id(id) => *id == uid,
            Self::Named(name) => {
                *name == uid.to_string() || names.user(uid).is_some_and(|called| *called == **name)
            }
        }
    }
}

/// Which rows count. All that is set must be so; of several of a kind any will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// These processes, in order.
    pub pids: Vec<u32>,
    /// When all of them were alive, in nanoseconds: who has such a number and began later is another. `None`: not known.
    pub seen: Option<u64>,
    /// Processes of these names.
    pub comms: Vec<Comm>,
    /// What these users did.
    pub users: Vec<User>,
    /// Processes in these cgroups and those below: paths in the hierarchy.
    pub cgroups: Vec<String>,
    /// This file.
    pub file: Option<Wanted>,
    /// Files of the file system with this device number.
    pub mount: Option<Dev>,
    /// Of a recording: the file that had this path, for nobody can look it up any more.
    pub path: Option<String>,
    /// Of a recording: files of the file system that had this path.
    pub below: Option<String>,
    /// What was counted of files, all of them: for rows that threads are not counted by.
    pub from_files: bool,
    /// The kernel programs have left out what is not requested. Whether it was, only they can tell for sure: a cgroup may
    /// be gone by now, a file renamed.
    pub decided: bool,
}

impl Filter {
    /// Whether files must be counted for it.
    #[must_use]
    pub const fn files(&self) -> bool {
        self.file.is_some()
            || self.mount.is_some()
            || self.path.is_some()
            || self.below.is_some()
            || self.from_files
    }

    /// Whether everything counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What must not have been lost for the sum of rows to be all that was requested: each is a row that there was no
    /// room for.
    pub(super) fn depends_on(&self, files: bool) -> [Option<Counter>; 2] {
        let threads = self.by_process() || !self.cgroups.is_empty();
        // Where only some threads are requested, these alone count as lost rows.
        let rows = if threads { Counter::LostRows } else { Counter::LostFrames };
        [Some(rows).filter(|_| threads || files), Some(Counter::LostFiles).filter(|_| files)]
    }

    /// Whether it asks for more than cgroups and files: for processes, names, users.
    pub(crate) fn by_process(&self) -> bool {
        !(self.pids.is_empty() && self.comms.is_empty() && self.users.is_empty())
    }

    /// Whether a cgroup is one of those that are asked for, or below one.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.cgroups.iter().any(|want| crate::cgroup::is_below(path, want))
    }

    pub(crate) fn takes(&self, item: &Item<'_>, names: &mut dyn Names) -> bool {
        (self.pids.is_empty() || self.is_one_of_them(item))
            && self.mount.is_none_or(|d| item.file.is_some_and(|(f, _)| f.dev == d))
            && (self.decided || self.finds(item, names))
    }

    fn is_one_of_them(&self, item: &Item<'_>) -> bool {
        let began = item.family.map(|family| family.begun);
        let later = self.seen.zip(began).is_some_and(|(seen, began)| began > seen);
        // Of those who had to make room nobody knows the numbers: they were asked for, if the kernel has decided it.
        self.pids.binary_search(&item.tgid).is_ok() && !later || self.decided && item.is_away()
    }

    /// Whether an item is in rows of this kind, of what the filter leaves. Where rows are put together, it has been asked.
    pub(super) fn counts(&self, by: By, item: &Item<'_>, names: &mut dyn Names) -> bool {
        match item.only {
            Some(only) => only == by || only == By::Device && by == By::Mount,
            None => self.is_empty() || self.takes(item, names),
        }
    }

    fn finds(&self, item: &Item<'_>, names: &mut dyn Names) -> bool {
        let named = |want: &String, names: &mut dyn Names| {
            item.file.is_some_and(|(f, _)| names.mounts(f.block.unwrap_or(f.dev)).leads(want, f))
        };
        let held = |want: &String, names: &mut dyn Names| {
            item.file.is_some_and(|(f, _)| names.mounts(f.dev).holding(want) == Some(f.dev))
        };
        if !self.path.as_ref().is_none_or(|want| named(want, names))
            || !self.below.as_ref().is_none_or(|want| held(want, names))
        {
            return false;
        }
        (self.comms.is_empty() || self.comms.contains(&item.process))
            && (self.users.is_empty() || self.users.iter().any(|user| user.is(item.uid, names)))
            && self.file.as_ref().is_none_or(|w| item.file.is_some_and(|(f, _)| w.is(f)))
            && (self.cgroups.is_empty() || self.holds(&names.cgroup(item.cgroup, item.tgid).path))
    }
}
