//! What counts of all that a sample has.

use super::by::By;
use super::item::Item;
use crate::files::Dev;
use crate::files::Wanted;
use crate::names::Names;
use crate::sample::Comm;
use crate::sample::Counter;

/// Which rows count. All that is set must be so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// This process.
    pub pid: Option<u32>,
    /// Processes of this name.
    pub comm: Option<Comm>,
    /// Processes in this cgroup and those below: path in the hierarchy.
    pub cgroup: Option<String>,
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
        let threads = self.pid.is_some() || self.comm.is_some() || self.cgroup.is_some();
        // Where only some threads are requested, these alone count as lost rows.
        let rows = if threads { Counter::LostRows } else { Counter::LostFrames };
        [Some(rows).filter(|_| threads || files), Some(Counter::LostFiles).filter(|_| files)]
    }

    pub(crate) fn takes(&self, item: &Item<'_>, names: &mut dyn Names) -> bool {
        self.pid.is_none_or(|p| p == item.tgid)
            && self.mount.is_none_or(|d| item.file.is_some_and(|(f, _)| f.dev == d))
            && (self.decided || self.finds(item, names))
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
            item.file.is_some_and(|(f, _)| names.mounts(f.dev).leads(want, f))
        };
        let held = |want: &String, names: &mut dyn Names| {
            item.file.is_some_and(|(f, _)| names.mounts(f.dev).holding(want) == Some(f.dev))
        };
        if !self.path.as_ref().is_none_or(|want| named(want, names))
            || !self.below.as_ref().is_none_or(|want| held(want, names))
        {
            return false;
        }
        self.comm.is_none_or(|c| c == item.process)
            && self.file.as_ref().is_none_or(|w| item.file.is_some_and(|(f, _)| w.is(f)))
            && self
                .cgroup
                .as_ref()
                .is_none_or(|want| crate::cgroup::is_below(&names.cgroup(item.cgroup, item.tgid).path, want))
    }
}
