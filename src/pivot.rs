//! Pivots: what happened, added up by process, thread, name, user, cgroup, file, mount or device.
//!
//! Pure but for [`Names`], which knows what numbers are called. Threads come with the rows of a sample, files with
//! its file rows: whoever asks for files by who used them gets these added up by owner.

mod names;
mod other;
mod roster;
mod wanted;
mod weight;

use std::rc::Rc;
use std::sync::Arc;

pub use names::System;
pub(crate) use other::OTHER;
pub(crate) use other::both;
pub use other::label;
pub(crate) use other::nobody;
pub(crate) use other::rest;
pub use roster::Id;
pub(crate) use roster::Place;
pub(crate) use roster::Roster;
pub use roster::Subject;
pub(crate) use roster::counters;
pub use wanted::Choice;
pub(crate) use weight::PAGE;
pub(crate) use weight::Weights;

use crate::cgroup::Cgroup;
use crate::classic;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::Unit;
use crate::files::Dev;
use crate::files::File;
use crate::files::Mounts;
use crate::files::Wanted;
use crate::foreign::Foreign;
use crate::model;
use crate::model::Interval;
use crate::model::Row;
use crate::plan::Brackets;
use crate::plan::Plan;
use crate::sample::Comm;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::FileSample;
use crate::sample::Folded;
use crate::sample::RowSample;
use crate::sample::Sample;
use crate::sample::Sparse;

/// What rows stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Processes, the threads of each taken together.
    Process,
    /// Threads.
    Thread,
    /// Command names: all processes of one name.
    Comm,
    /// Users.
    User,
    /// Control groups, with the container, pod or unit that the path tells.
    Cgroup,
    /// Files.
    File,
    /// Mounted file systems.
    Mount,
    /// Devices.
    Device,
}

impl By {
    /// Whether files must be counted for it.
    #[must_use]
    pub const fn files(self) -> bool {
        matches!(self, By::File | By::Mount | By::Device)
    }

    /// What several of them are called.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            By::Process => "processes",
            By::Thread => "threads",
            By::Comm => "commands",
            By::User => "users",
            By::Cgroup => "cgroups",
            By::File => "files",
            By::Mount => "mounts",
            By::Device => "devices",
        }
    }

    /// What one of them is called.
    #[must_use]
    pub const fn singular(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Thread => "thread",
            By::Comm => "command",
            By::User => "user",
            By::Cgroup => "cgroup",
            By::File => "file",
            By::Mount => "mount",
            By::Device => "device",
        }
    }
}

/// What a row is about; `None` where rows of this kind have no single one, or it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Who {
    /// Thread-group id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// User id.
    pub uid: Option<u32>,
    /// User name.
    pub user: Option<Foreign>,
    /// Command name; of a thread, the thread's own.
    pub comm: Option<Foreign>,
    /// Path of the cgroup.
    pub cgroup: Option<Foreign>,
    /// Container or pod, as the cgroup's path tells.
    pub container: Option<Foreign>,
    /// systemd unit, as the cgroup's path tells.
    pub unit: Option<Foreign>,
    /// Path of the file; `(deleted)` at its end if no directory had it any more when it was last used.
    pub path: Option<Foreign>,
    /// Device number and name of the file system's device.
    pub device: Option<Foreign>,
    /// Inode number.
    pub inode: Option<u64>,
    /// Mount point of the file system.
    pub mount: Option<Foreign>,
    /// It stands for all that has no row of its own: what no table had room for, and rows that were not asked for. Nothing
    /// else is known of it.
    pub other: bool,
}

/// What numbers are called.
pub trait Names {
    /// The name of a user.
    fn user(&mut self, uid: u32) -> Option<Rc<str>>;
    /// The cgroup with this id, in which the process was.
    fn cgroup(&mut self, id: u64, tgid: u32) -> Rc<Cgroup>;
    /// The mounts, read anew if they do not know this device.
    fn mounts(&mut self, dev: Dev) -> &mut Mounts;
    /// Another number whenever something that had a name may have another one.
    fn version(&self) -> u64 {
        0
    }
}

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
    /// What was counted of files, all of them: for rows that threads are not counted by.
    pub from_files: bool,
    /// The kernel programs have left out what is not asked for. Whether it was, only they can tell for sure: a cgroup may
    /// be gone by now, a file renamed.
    pub decided: bool,
}

impl Filter {
    /// Whether files must be counted for it.
    #[must_use]
    pub const fn files(&self) -> bool {
        self.file.is_some() || self.mount.is_some() || self.from_files
    }

    /// Whether everything counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What must not have been lost for the sum of rows to be all that was asked for: each is a row that there was no
    /// room for.
    fn depends_on(&self, files: bool) -> [Option<Counter>; 2] {
        let threads = self.pid.is_some() || self.comm.is_some() || self.cgroup.is_some();
        // Where only some threads are asked for, these alone count as lost rows.
        let rows = if threads { Counter::LostRows } else { Counter::LostFrames };
        [Some(rows).filter(|_| threads || files), Some(Counter::LostFiles).filter(|_| files)]
    }

    pub(crate) fn takes(&self, item: &Item<'_>, names: &mut dyn Names) -> bool {
        self.pid.is_none_or(|p| p == item.tgid)
            && self.mount.is_none_or(|d| item.file.is_some_and(|(f, _)| f.dev == d))
            && (self.decided || self.finds(item, names))
    }

    fn finds(&self, item: &Item<'_>, names: &mut dyn Names) -> bool {
        self.comm.is_none_or(|c| c == item.process)
            && self.file.as_ref().is_none_or(|w| item.file.is_some_and(|(f, _)| w.is(f)))
            && self.cgroup.as_ref().is_none_or(|want| {
                let group = names.cgroup(item.cgroup, item.tgid);
                let rest = group.path.strip_prefix(want.trim_end_matches('/'));
                rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
            })
    }
}

/// A row of a sample, whichever table it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    tgid: u32,
    tid: u32,
    uid: u32,
    cgroup: u64,
    born: u64,
    comm: Comm,
    process: Comm,
    /// The file, and whether it was deleted.
    file: Option<(&'a Arc<File>, bool)>,
    /// What rows it is part of, where it is not part of all.
    only: Option<By>,
    counters: &'a Sparse,
}

impl Item<'_> {
    /// Whether it is in rows of this kind, of what the filter leaves. Where rows are put together, it has been asked.
    fn counts(&self, by: By, filter: &Filter, names: &mut dyn Names) -> bool {
        match self.only {
            Some(only) => only == by || only == By::Device && by == By::Mount,
            None => filter.is_empty() || filter.takes(self, names),
        }
    }
}

/// What is the same for all that is added up in a row.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Comm(Comm),
    File(Dev, u64, u32, Option<Dev>, Option<String>),
    Name(String),
}

/// Which rows are made of a sample, and of which part of it.
pub struct Pivot {
    /// What rows stand for; `None`: no rows.
    pub by: Option<By>,
    /// How many rows have names; the others are counted only.
    pub top: usize,
    /// What counts.
    pub filter: Filter,
    /// What numbers are called.
    pub names: Box<dyn Names>,
}

impl Pivot {
    /// Whether files must be counted.
    #[must_use]
    pub fn files(&self) -> bool {
        self.filter.files() || self.by.is_some_and(By::files)
    }

    /// What happened from `before` to `now`, which must be two samples of one source in a row.
    pub fn interval(&mut self, before: &Sample, now: &Sample, plan: &Plan) -> Interval {
        let line = self.line(before, now, self.files());
        self.below(&line, before, now, plan)
    }

    /// The same with another line above the rows.
    pub(crate) fn below(&mut self, line: &Counters, before: &Sample, now: &Sample, plan: &Plan) -> Interval {
        let mut out = model::whole(before, now, plan);
        let files = self.files();
        let mut rows_line = owned(line, plan, files);
        if self.filter.is_empty() {
            out.total = model::figures(line, plan);
        } else {
            // What found no room may be what was chosen.
            let lacks = |c| now.total.get(c) > before.total.get(c);
            if self.filter.depends_on(files).into_iter().flatten().any(lacks) {
                rows_line = Figures::unknown();
            }
            out.total = rows_line.clone();
            out.histograms = None; // those of the whole system
        }
        if let Some(by) = self.by {
            (out.rows, out.groups) = self.rows(by, now, plan, files);
        }
        classic::join(&mut out, before, now, plan, self.by == Some(By::Process));
        if let Some(pid) = self.filter.pid {
            classic::narrow(&mut out, before, now, pid);
        }
        out.rows.truncate(self.top);
        if let Some(by) = self.by {
            let rest = other::row(&out, rows_line, by);
            out.rows.extend(rest);
        }
        out
    }

    /// What was counted of the whole system, or of what the filter leaves of it: the line above the rows.
    pub(crate) fn line(&mut self, before: &Sample, now: &Sample, files: bool) -> Counters {
        if self.filter.is_empty() {
            return model::line(before, now, files);
        }
        let mut sum = Counters::default();
        for item in items(now, files).filter(|i| self.filter.takes(i, self.names.as_mut())) {
            sum.add_sparse(item.counters);
        }
        sum
    }

    /// Puts the rows of a sample together that stand for the same; see [`Roster::call`].
    pub(crate) fn call(&mut self, roster: &mut Roster, now: &Sample, files: bool) -> Vec<Sparse> {
        roster.call(now, files, &self.filter, self.names.as_mut())
    }

    fn rows(&mut self, by: By, now: &Sample, plan: &Plan, files: bool) -> (Vec<Row>, usize) {
        let mut roster = Roster::new(by);
        let sums = self.call(&mut roster, now, files);
        let known = known(plan, files);
        let group = |at: &usize| {
            let member = roster.member(*at);
            let counters = match member.place {
                Place::Row(row) => counters(now, files, row)?,
                Place::Sum(n) => sums.get(n)?,
            };
            let figures = model::known_figures(&counters.all(), &known);
            let item = item(now, files, member.latest).filter(|_| !idle(&figures))?;
            Some((busy(&figures), item, figures))
        };
        let mut ranked: Vec<_> = roster.present.iter().filter_map(group).collect();
        ranked.sort_by_key(|(busy, i, _)| {
            (std::cmp::Reverse(*busy), i.tgid, i.tid, i.file.map(|(f, _)| f.inode))
        });
        let number = ranked.len();
        ranked.truncate(self.top);
        let name = |(_, item, figures): (u64, Item<'_>, Figures)| Row {
            who: who(by, &item, self.names.as_mut()),
            figures,
            classic: None,
        };
        (ranked.into_iter().map(name).collect(), number)
    }
}

/// The rows by process, with what needs no names: for those who look at figures only.
#[must_use]
pub(crate) fn processes(now: &Sample, plan: &Plan) -> Vec<Row> {
    let (by, names) = (Some(By::Process), Box::new(Nameless::default()));
    let mut pivot = Pivot { by, top: usize::MAX, filter: Filter::default(), names };
    pivot.rows(By::Process, now, plan, false).0
}

/// Knows nothing.
#[derive(Default)]
struct Nameless(Mounts);

impl Names for Nameless {
    fn user(&mut self, _: u32) -> Option<Rc<str>> {
        None
    }

    fn cgroup(&mut self, id: u64, _: u32) -> Rc<Cgroup> {
        Rc::new(Cgroup { path: format!("cgroup:{id}"), label: crate::cgroup::Label::default() })
    }

    fn mounts(&mut self, _: Dev) -> &mut Mounts {
        &mut self.0
    }
}

pub(crate) fn of_row(r: &RowSample) -> Item<'_> {
    Item {
        tgid: r.tgid,
        tid: r.tid,
        uid: r.uid,
        cgroup: r.cgroup,
        born: r.born,
        comm: r.comm,
        process: r.process,
        file: None,
        only: None,
        counters: &r.counters,
    }
}

pub(crate) fn of_file(f: &FileSample) -> Item<'_> {
    Item {
        tgid: f.tgid,
        tid: 0,
        uid: f.uid,
        cgroup: f.cgroup,
        born: f.born,
        comm: f.process,
        process: f.process,
        file: Some((&f.file, f.deleted)),
        only: None,
        counters: &f.counters,
    }
}

fn of_folded_row(f: &Folded<RowSample>) -> Item<'_> {
    Item { only: Some(f.by), ..of_row(&f.row) }
}

fn of_folded_file(f: &Folded<FileSample>) -> Item<'_> {
    Item { only: Some(f.by), ..of_file(&f.row) }
}

fn items(sample: &Sample, files: bool) -> impl Iterator<Item = Item<'_>> {
    let threads = sample.rows.iter().map(of_row).chain(sample.folded.threads.iter().map(of_folded_row));
    let of_files = sample.files.iter().map(of_file).chain(sample.folded.files.iter().map(of_folded_file));
    threads.filter(move |_| !files).chain(of_files.filter(move |_| files))
}

/// One of [`items`].
fn item(sample: &Sample, files: bool, n: usize) -> Option<Item<'_>> {
    if files {
        let folded = || sample.folded.files.get(n - sample.files.len()).map(of_folded_file);
        sample.files.get(n).map(of_file).or_else(folded)
    } else {
        let folded = || sample.folded.threads.get(n - sample.rows.len()).map(of_folded_row);
        sample.rows.get(n).map(of_row).or_else(folded)
    }
}

fn key(by: By, item: &Item<'_>, names: &mut dyn Names) -> Key {
    match (by, item.file) {
        (By::Process, _) => Key::Number(item.tgid.into()),
        (By::Thread, _) => Key::Number(u64::from(item.tgid) << 32 | u64::from(item.tid)),
        (By::Comm, _) => Key::Comm(item.process),
        (By::User, _) => Key::Number(item.uid.into()),
        (By::Cgroup, _) => Key::Number(item.cgroup),
        (_, None) => Key::Number(0),
        (By::File, Some((f, _))) => {
            // Subvolumes of btrfs have inode numbers of their own each, below one device.
            let btrfs = names.mounts(f.dev).kind(f.dev) == Some("btrfs");
            Key::File(f.dev, f.inode, f.generation, f.block, btrfs.then(|| f.name.clone()))
        }
        (By::Mount, Some((f, _))) => {
            let dev = f.block.unwrap_or(f.dev);
            Key::Number(u64::from(dev.major) << 32 | u64::from(dev.minor))
        }
        (By::Device, Some((f, _))) => {
            let dev = f.block.unwrap_or(f.dev);
            Key::Name(names.mounts(dev).device(dev))
        }
    }
}

fn who(by: By, item: &Item<'_>, names: &mut dyn Names) -> Who {
    let mut out = Who::default();
    let owner = matches!(by, By::Process | By::Thread);
    if owner {
        out.pid = Some(item.tgid);
    }
    if by == By::Thread {
        out.tid = Some(item.tid);
        out.comm = Some(item.comm.foreign());
    }
    if matches!(by, By::Process | By::Comm) {
        out.comm = Some(item.process.foreign());
    }
    if owner || by == By::User {
        out.uid = Some(item.uid);
        out.user = names.user(item.uid).map(|u| Foreign::from(&*u));
    }
    if owner || by == By::Cgroup {
        let group = names.cgroup(item.cgroup, item.tgid);
        out.cgroup = Some(group.path.as_str().into());
        out.container = group.label.container.clone().map(Foreign::from);
        out.unit = group.label.unit.clone().map(Foreign::from);
    }
    if let (true, Some((file, deleted))) = (by.files(), item.file) {
        let dev = file.block.unwrap_or(file.dev);
        let mounts = names.mounts(dev);
        out.device = Some(mounts.device(dev).into());
        if by != By::Device {
            out.mount = mounts.point(file.dev).map(Foreign::from);
        }
        if by == By::File {
            out.inode = Some(file.inode);
            let mark = if deleted && file.named != crate::files::Named::Loose { " (deleted)" } else { "" };
            out.path = mounts.path(file).map(|p| Foreign::from(p).with(mark));
        }
    }
    out
}

/// Figures of a part of the system.
fn owned(counters: &Counters, plan: &Plan, files: bool) -> Figures {
    model::known_figures(counters, &known(plan, files))
}

/// Which figures a part of the system can have.
pub(crate) fn known(plan: &Plan, files: bool) -> [bool; FIGURES] {
    let mut known = model::known(plan);
    // What the cache loses is no process's doing: the pages of one are reclaimed by another.
    for figure in [Figure::Evicted, Figure::Removed, Figure::ReadaheadWasted] {
        known[figure as usize] = false;
    }
    if plan.brackets == Brackets::Tracepoints {
        known[Figure::Refaulted as usize] = false; // known of the system only
    }
    if files {
        for figure in Figure::ALL.iter().filter(|f| !model::BY_FILE.contains(f)) {
            known[*figure as usize] = false;
        }
    }
    known
}

/// Whether nothing happened. Direct I/O has bytes only.
pub(crate) fn idle(figures: &Figures) -> bool {
    Figure::ALL.iter().all(|f| figures.get(*f).unwrap_or(0) == 0)
}

/// What rows are ranked by. Bytes and times would drown the pages.
pub(crate) fn busy(figures: &Figures) -> u64 {
    let pages = |f: &Figure| match f.unit() {
        Unit::Pages | Unit::Events => figures.get(*f).unwrap_or(0),
        Unit::Bytes | Unit::Nanoseconds => 0,
    };
    Figure::ALL.iter().map(pages).sum()
}

#[cfg(test)]
mod tests;
