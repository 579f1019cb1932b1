//! Processes that have ended: how their rows are shown, and what several of them are called together.

use super::id::Id;
use super::id::Subject;
use crate::model::Who;
use crate::options::OneOf;

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
    /// Each by itself, behind all that live.
    Apart,
}

impl OneOf for Ended {
    const ALL: &'static [Self] = &[Ended::Command, Ended::Cgroup, Ended::Apart];

    fn name(self) -> &'static str {
        match self {
            Ended::Unasked => "unasked",
            Ended::Command => "command",
            Ended::Cgroup => "cgroup",
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
            Ended::Cgroup => Ended::Apart,
            Ended::Apart | Ended::Unasked => Ended::Command,
        }
    }

    /// Whether they are put together.
    #[must_use]
    pub const fn folds(self) -> bool {
        matches!(self, Ended::Command | Ended::Cgroup)
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
