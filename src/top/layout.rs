//! Which columns a width has room for.

use std::borrow::Cow;

use crate::columns::Column;
use crate::pivot::By;
use crate::pivot::OTHER;
use crate::pivot::Who;
use crate::pivot::label;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::width::beginning;
use crate::top::cells;
use crate::top::settings::Sort;

/// What a row is called when nothing is left for its name: a part of it.
const SHORTEST: usize = 9;

/// A column before the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Process.
    Pid,
    /// Thread.
    Tid,
    /// User by number: the narrow screen's.
    Uid,
    /// User by name.
    User,
    /// Device.
    Device,
    /// Container, pod or unit.
    Unit,
    /// How pages are pushed out.
    How,
    /// A bar for the part that it has of all that happened.
    Share,
}

/// What may stand beside numbers and names, where there is room.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// Some rows are in a container or unit.
    pub units: bool,
    /// Bars can be drawn.
    pub share: bool,
}

impl Lead {
    /// Its title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Lead::Pid => "PID",
            Lead::Tid => "TID",
            Lead::Uid => "UID",
            Lead::User => "USER",
            Lead::Device => "DEVICE",
            Lead::Unit => "UNIT",
            Lead::How => "HOW",
            Lead::Share => "SHARE",
        }
    }

    /// Its width.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Lead::Pid | Lead::Tid => 7,
            Lead::Uid => 5,
            Lead::User => 8,
            Lead::Device => 14,
            Lead::Unit => 16,
            Lead::How => 11,
            Lead::Share => 6,
        }
    }

    /// Whether it begins at the left of its column.
    #[must_use]
    pub const fn left(self) -> bool {
        matches!(self, Lead::User | Lead::Device | Lead::Unit | Lead::How | Lead::Share)
    }

    /// What rows of this kind are sorted by that are sorted by this column; `None` where there is nothing like it.
    #[must_use]
    pub const fn sort(self, by: By) -> Option<Sort> {
        match (self, by) {
            (Lead::Share, _) => Some(Sort::Busy),
            // The id of the row, and not of what it belongs to.
            (Lead::Pid, By::Process) | (Lead::Tid, By::Thread) | (Lead::Uid, By::User) => Some(Sort::Id),
            _ => None,
        }
    }

    /// The cell.
    #[must_use]
    pub fn cell(self, who: &Who) -> String {
        let number = |n: Option<u32>| n.map_or_else(|| "-".into(), |n| n.to_string());
        match self {
            Lead::Pid => number(who.pid),
            Lead::Tid => number(who.tid),
            Lead::Uid => number(who.uid),
            Lead::User => foreign::or(who.user.as_ref(), &number(who.uid)),
            Lead::Device => foreign::or(who.device.as_ref(), "-"),
            // Drawn over it.
            Lead::Share => String::new(),
            Lead::How => who.how.unwrap_or("-").into(),
            Lead::Unit => {
                beginning(&foreign::or(who.container.as_ref().or(who.unit.as_ref()), "-"), self.width())
            }
        }
    }
}

/// The title of the last column.
#[must_use]
pub const fn name_title(by: By) -> &'static str {
    match by {
        By::Process | By::Thread | By::Comm => "COMMAND",
        By::User => "USER",
        By::Cgroup => "CGROUP",
        By::File => "FILE",
        By::Mount => "MOUNT",
        By::Device => "DEVICE",
        By::Evictor => "WHOSE <- BY WHOM",
    }
}

/// What the last column shows.
#[must_use]
pub fn shown(by: By, who: &Who) -> String {
    let name = name(by, who).visible().to_string();
    if who.other { name } else { label(&name).into_owned() }
}

/// The last column: what the row is called.
#[must_use]
pub fn name(by: By, who: &Who) -> Cow<'_, Foreign> {
    if who.other {
        return Cow::Owned(OTHER.into());
    }
    let text = match by {
        By::Process | By::Thread | By::Comm => who.comm.as_ref(),
        By::User => who.user.as_ref(),
        // The path of a container is long and says no more.
        By::Cgroup => return cgroup(who),
        By::Mount => who.mount.as_ref(),
        By::Device => who.device.as_ref(),
        By::File => who.path.as_ref(),
        By::Evictor => return Cow::Owned(who.pushed()),
    };
    match (text, by, who.uid, who.inode) {
        (Some(text), ..) => Cow::Borrowed(text),
        (None, By::User, Some(uid), _) => Cow::Owned(uid.to_string().into()),
        (None, By::File, _, inode) => {
            let inode = inode.map_or_else(|| "-".into(), |n| n.to_string());
            let device = who.device.clone().unwrap_or_else(|| "-".into());
            Cow::Owned(device.with(&format!(" inode {inode}")))
        }
        _ => Cow::Owned("-".into()),
    }
}

/// A cgroup by its container, or from its unit on: what stands before that is the same for many.
fn cgroup(who: &Who) -> Cow<'_, Foreign> {
    if let Some(container) = &who.container {
        return Cow::Borrowed(container);
    }
    let Some(path) = &who.cgroup else { return Cow::Owned("-".into()) };
    let raw = path.raw();
    let unit = who.unit.as_ref().map(|unit| format!("/{}", unit.raw()));
    match unit.and_then(|unit| raw.rfind(&unit)).and_then(|at| raw.get(at + 1..)) {
        Some(rest) => Cow::Owned(rest.into()),
        None => Cow::Borrowed(path),
    }
}

/// The columns of a table.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Before the figures.
    pub leads: Vec<Lead>,
    /// The figures, and how wide they are.
    pub columns: Vec<(&'static Column, usize)>,
    /// What is left for the name.
    pub name: usize,
    /// Columns left out at the left and at the right.
    pub hidden: (usize, usize),
}

impl Layout {
    /// As many of the columns as a width holds, beginning at the `skip`-th.
    #[must_use]
    pub fn new(by: By, beside: Beside, (wanted, skip): (&[&'static Column], usize), width: usize) -> Self {
        let leads: &[Lead] = match by {
            By::Process if width >= 126 && beside.units => &[Lead::Pid, Lead::User, Lead::Unit],
            By::Process if width >= 96 => &[Lead::Pid, Lead::User],
            By::Process if width >= 60 => &[Lead::Pid, Lead::Uid],
            By::Process => &[Lead::Pid],
            By::Thread if width >= 60 => &[Lead::Pid, Lead::Tid],
            By::Thread => &[Lead::Tid],
            By::Mount if width >= 60 => &[Lead::Device],
            By::Evictor if width >= 40 => &[Lead::How],
            By::User if width >= 60 => &[Lead::Uid],
            _ => &[],
        };
        let mut leads = leads.to_vec();
        if beside.share && width >= 96 {
            leads.push(Lead::Share);
        }
        // Paths need more room than the 15 characters of a command.
        let shortest = match by {
            By::File | By::Cgroup | By::Mount => SHORTEST.max(width / 4),
            // Command lines.
            By::Process => SHORTEST.max(width / 5).min(60),
            _ if width >= 100 => 15,
            _ => SHORTEST,
        };
        let mut left = width.saturating_sub(shortest + leads.iter().map(|l| l.width() + 1).sum::<usize>());
        let skip = skip.min(wanted.len().saturating_sub(1));
        let mut columns = Vec::new();
        for column in wanted.iter().skip(skip) {
            let width = cells::width(column);
            if left < width + 1 {
                break;
            }
            left -= width + 1;
            columns.push((*column, width));
        }
        let hidden = (skip, wanted.len().saturating_sub(skip + columns.len()));
        Self { leads, columns, name: (shortest + left).min(width), hidden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Engine;

    #[test]
    fn eighty_columns_have_those_of_bcc_and_direct_io() {
        let wanted = cells::default_columns(Engine::Exact);
        let layout = Layout::new(By::Process, Beside::default(), (&wanted, 0), 80);
        let titles: Vec<_> = layout.columns.iter().map(|(c, _)| cells::title(c)).collect();
        assert_eq!(titles, ["HITS", "RAHITS", "MISSES", "DIRTIES", "READ_HIT%", "DIRECT"]);
        assert!(layout.name >= 16, "room for a command line");
    }

    #[test]
    fn every_width_fits() {
        let wanted = cells::default_columns(Engine::Exact);
        for by in
            [By::Process, By::Thread, By::User, By::Cgroup, By::File, By::Mount, By::Device, By::Evictor]
        {
            for width in 0..300 {
                let l = Layout::new(
                    by,
                    Beside { units: width % 2 == 0, share: width % 3 == 0 },
                    (&wanted, 2),
                    width,
                );
                let leads: usize = l.leads.iter().map(|l| l.width() + 1).sum();
                let figures: usize = l.columns.iter().map(|(_, w)| w + 1).sum();
                assert!(leads + figures + l.name <= width || width < 20, "{by:?} {width}");
                assert_eq!(l.hidden.0 + l.hidden.1 + l.columns.len(), wanted.len());
            }
        }
    }
}
