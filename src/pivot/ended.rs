//! Processes that have ended: how their rows are shown, and what several of them are called together.

use std::collections::HashMap;

use super::by::By;
use super::id::Id;
use super::id::Subject;
use super::item::Item;
use crate::model::Who;
use crate::options::OneOf;
use crate::sample::Family;
use crate::sample::RowSample;

/// How rows of processes that have ended are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// Like all others: nobody asks whether a process lives.
    #[default]
    Unasked,
    /// Together, by command.
    Command,
    /// Together, by cgroup.
    Cgroup,
    /// Together, by the nearest one above them that lives.
    Parent,
    /// Each by itself, behind all that live.
    Apart,
}

impl OneOf for Ended {
    const ALL: &'static [Self] = &[Ended::Command, Ended::Cgroup, Ended::Parent, Ended::Apart];

    fn name(self) -> &'static str {
        match self {
            Ended::Unasked => "unasked",
            Ended::Command => "command",
            Ended::Cgroup => "cgroup",
            Ended::Parent => "parent",
            Ended::Apart => "apart",
        }
    }
}

impl Ended {
    /// The next one round.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Ended::Command => Ended::Cgroup,
            Ended::Cgroup => Ended::Parent,
            Ended::Parent => Ended::Apart,
            Ended::Apart | Ended::Unasked => Ended::Command,
        }
    }

    /// Whether they are put together.
    #[must_use]
    pub const fn folds(self) -> bool {
        matches!(self, Ended::Command | Ended::Cgroup | Ended::Parent)
    }

    /// What those are called that ended below this one, which lives; `None`: of which nobody knows any that does.
    pub(crate) fn below(parent: Option<Family>) -> Subject {
        let who = Who {
            pid: parent.map(|f| f.parent),
            comm: Some(parent.map_or_else(|| "(parents ended)".into(), |f| f.parent_name.foreign())),
            ..Who::default()
        };
        let key = parent.map_or((0, 0), |f| (f.parent, f.parent_begun));
        Subject { id: Id::Text(format!("below {} {}", key.0, key.1)), who }
    }

    /// What those are called that ended together with the one that this row is about: nothing is said of a single
    /// process but where there was only one.
    pub(crate) fn together(self, who: &Who, alone: bool) -> Subject {
        let mut out = match self {
            Ended::Cgroup => Who {
                comm: who.container.clone().or_else(|| who.cgroup.clone()),
                cgroup: who.cgroup.clone(),
                container: who.container.clone(),
                unit: who.unit.clone(),
                ..Who::default()
            },
            _ => Who { comm: who.comm.clone(), ..Who::default() },
        };
        let name = crate::text::foreign::or(out.comm.as_ref(), "-");
        if alone {
            (out.pid, out.uid, out.user) = (who.pid, who.uid, who.user.clone());
            (out.cgroup, out.container, out.unit) =
                (who.cgroup.clone(), who.container.clone(), who.unit.clone());
        }
        Subject { id: Id::Text(name), who: out }
    }
}

/// Levels that are gone up at most.
const LEVELS: usize = 64;

/// Who made whom, of those that have rows.
#[derive(Debug, Default)]
pub(crate) struct Families(HashMap<(u32, u64), Family>, HashMap<u32, Family>);

impl Families {
    /// Of the processes of these rows.
    pub(crate) fn new<'a>(rows: impl Iterator<Item = &'a RowSample>) -> Self {
        let mut out = Self::default();
        for (tgid, family) in rows.filter(|r| r.tgid != 0).filter_map(|r| Some((r.tgid, r.family?))) {
            out.0.insert((tgid, family.begun), family);
            out.1.insert(tgid, family);
        }
        out
    }

    /// Of a process that has a row, the latest with this id.
    pub(crate) fn of_process(&self, tgid: u32) -> Option<Family> {
        self.1.get(&tgid).copied()
    }

    /// Who lives above a thread or process that has ended; its own process is above a thread.
    pub(super) fn above(
        &self,
        family: Family,
        item: &Item<'_>,
        by: By,
        gone: &mut dyn FnMut(u32) -> bool,
    ) -> Option<Family> {
        if by == By::Thread && item.tgid != 0 && !gone(item.tgid) {
            return Some(Family {
                begun: 0,
                parent: item.tgid,
                parent_begun: family.begun,
                parent_name: item.process,
            });
        }
        self.living(family, gone)
    }

    /// The nearest one above that has not ended; a shell that a build starts for each file is none. `None` where it is not
    /// known: one that has ended did nothing in the time of these rows.
    pub(crate) fn living(&self, child: Family, gone: &mut dyn FnMut(u32) -> bool) -> Option<Family> {
        let mut at = child;
        for _ in 0..LEVELS {
            if at.parent == 0 {
                return None;
            }
            if !gone(at.parent) {
                return Some(at);
            }
            at = *self.0.get(&(at.parent, at.parent_begun))?;
        }
        None
    }
}
