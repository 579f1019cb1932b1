//! From samples to what the screen shows: rows of the pivot asked for, and rows that have just gone.
//!
//! It runs in the thread that samples. All that may take its time happens here: tables of the kernel, names of users,
//! paths of cgroups.

use std::collections::HashMap;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::figures::Figure;
use crate::figures::Figures;
use crate::model::Interval;
use crate::model::Row;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::pivot::Who;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::sample::Source;
use crate::top::settings::Show;
use crate::top::whole::Whole;

/// How many intervals a row stays that does nothing any more.
const LINGER: u32 = 3;
/// How many of these there are at most: a storm of short processes would bury the others.
const LINGERING: usize = 1000;

/// Which rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// What rows stand for.
    pub by: By,
    /// The interval, or all since the start.
    pub show: Show,
    /// Threads as well.
    pub threads: bool,
}

/// What makes a row the same as one of the interval before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// A number: of a process, a thread or a user.
    Number(u64),
    /// A name.
    Text(String),
}

impl Id {
    /// Of a row of this kind.
    #[must_use]
    pub fn of(by: By, who: &Who) -> Self {
        let text = |t: &Option<String>| Id::Text(t.clone().unwrap_or_default());
        match by {
            By::Process => Id::Number(who.pid.unwrap_or(0).into()),
            By::Thread => Id::Number(u64::from(who.pid.unwrap_or(0)) << 32 | u64::from(who.tid.unwrap_or(0))),
            By::User => Id::Number(who.uid.unwrap_or(0).into()),
            By::Comm => text(&who.comm),
            By::Cgroup => text(&who.cgroup),
            By::Mount => Id::Text(format!("{:?} {:?}", who.device, who.mount)),
            By::Device => text(&who.device),
            By::File => Id::Text(format!("{:?} {:?} {:?}", who.device, who.inode, who.path)),
        }
    }
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It did something in the interval.
    Active,
    /// It did nothing.
    Idle,
    /// The process has ended; the figures are those of its last interval.
    Ended,
}

/// A row of the screen.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is.
    pub id: Id,
    /// Who, and the figures.
    pub row: Arc<Row>,
    /// What became of it.
    pub state: State,
}

/// All that a screen shows.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The system, or what `-p` and its like leave of it, in the interval; without rows.
    pub system: Interval,
    /// The same since the start.
    pub since_start: Interval,
    /// Rows, the busiest first.
    pub entries: Vec<Entry>,
    /// Threads, where these were asked for.
    pub threads: Vec<Row>,
    /// What was asked for.
    pub view: View,
    /// It is a new interval, and not the last one seen in another way.
    pub fresh: bool,
    /// Rows that were forgotten in what is counted since the start.
    pub forgotten: u64,
}

/// Keeps the samples and makes snapshots of them.
pub struct Keeper<'a> {
    source: &'a mut dyn Source,
    pivot: Pivot,
    filter: Filter,
    files: bool,
    alive: Box<dyn Fn(u32) -> bool>,
    before: Rc<Sample>,
    now: Rc<Sample>,
    whole: Whole,
    /// The two samples on the screen while it is paused.
    held: Option<(Rc<Sample>, Rc<Sample>)>,
    lingering: HashMap<Id, (Entry, u32)>,
    last: Vec<Entry>,
    last_view: Option<View>,
    watched: Option<Id>,
}

impl<'a> Keeper<'a> {
    /// Begins to count; `files` says whether the source counts files as well, `alive` whether there is a process with an id.
    ///
    /// # Errors
    /// When the first sample cannot be read.
    pub fn new(
        source: &'a mut dyn Source,
        pivot: Pivot,
        files: bool,
        alive: Box<dyn Fn(u32) -> bool>,
    ) -> anyhow::Result<Self> {
        let first = Rc::new(source.sample()?);
        Ok(Self {
            filter: pivot.filter.clone(),
            source,
            pivot: Pivot { top: usize::MAX, ..pivot },
            files,
            alive,
            before: first.clone(),
            whole: Whole::new(&first),
            now: first,
            held: None,
            lingering: HashMap::new(),
            last: Vec::new(),
            last_view: None,
            watched: None,
        })
    }

    /// When the last sample was read.
    #[must_use]
    pub fn at(&self) -> std::time::Instant {
        self.now.at
    }

    /// Reads a sample and shows the interval that it ends.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tick(&mut self, view: View) -> anyhow::Result<Snapshot> {
        let now = Rc::new(self.source.sample()?);
        self.before = std::mem::replace(&mut self.now, now);
        self.whole.add(&self.now);
        // A picture that stands still keeps its rows; the new interval goes into the history only.
        let (before, now) = (self.before.clone(), self.now.clone());
        let mut snapshot = self.snapshot(&before, &now, view);
        if self.held.is_none() {
            self.linger(&mut snapshot);
        }
        snapshot.fresh = true;
        Ok(snapshot)
    }

    /// Shows the same interval in another way.
    pub fn again(&mut self, view: View) -> Snapshot {
        let (before, now) = self.held.clone().unwrap_or_else(|| (self.before.clone(), self.now.clone()));
        let mut snapshot = self.snapshot(&before, &now, view);
        self.begin(view);
        self.last.clone_from(&snapshot.entries);
        let kept: Vec<_> = self.lingering.values().map(|(entry, _)| entry.clone()).collect();
        if view.show != Show::Total {
            snapshot.entries.extend(kept);
        }
        snapshot
    }

    /// Holds the picture, or lets it go.
    pub fn hold(&mut self, hold: bool) {
        self.held = hold.then(|| (self.before.clone(), self.now.clone()));
    }

    /// The row that must not go away while somebody looks at it.
    pub fn watch(&mut self, id: Option<Id>) {
        self.watched = id;
    }

    fn snapshot(&mut self, before: &Sample, now: &Sample, view: View) -> Snapshot {
        let plan = self.source.plan().clone();
        self.pivot.filter = self.filter.clone();
        self.pivot.by = None;
        let system = self.pivot.interval(before, now, &plan);
        let since_start = self.pivot.interval(&self.whole.first, &self.whole.sum, &plan);
        let (before, now) = match view.show {
            Show::Total => (&self.whole.first, &self.whole.sum),
            Show::Count | Show::Rate => (before, now),
        };
        let mut rows = |by| {
            self.pivot.by = Some(by);
            self.pivot.interval(before, now, &plan).rows
        };
        let entry =
            |row: Row| Entry { id: Id::of(view.by, &row.who), row: Arc::new(row), state: State::Active };
        let entries = rows(view.by).into_iter().map(entry).collect();
        let threads = if view.threads && view.by == By::Process { rows(By::Thread) } else { Vec::new() };
        let forgotten = self.whole.forgotten;
        Snapshot { system, since_start, entries, threads, view, fresh: false, forgotten }
    }

    fn begin(&mut self, view: View) {
        let same = |a: View| a.by == view.by && (a.show == Show::Total) == (view.show == Show::Total);
        if !self.last_view.is_some_and(same) {
            self.lingering.clear();
            self.last.clear();
        }
        self.last_view = Some(view);
    }

    /// Adds the rows that did something a short while ago.
    fn linger(&mut self, snapshot: &mut Snapshot) {
        self.begin(snapshot.view);
        if snapshot.view.show == Show::Total {
            return;
        }
        let present: HashSet<&Id> = snapshot.entries.iter().map(|e| &e.id).collect();
        let mut kept: HashMap<Id, (Entry, u32)> = HashMap::new();
        let gone = self.last.drain(..).map(|e| (e, 0)).chain(self.lingering.drain().map(|(_, old)| old));
        for (mut entry, age) in gone {
            if present.contains(&entry.id) {
                continue;
            }
            let watched = Some(&entry.id) == self.watched.as_ref();
            if !watched && (age >= LINGER || kept.len() >= LINGERING) {
                continue;
            }
            let ended = entry.row.who.pid.is_some_and(|pid| !(self.alive)(pid));
            if ended {
                entry.state = State::Ended;
            } else if entry.state == State::Active {
                entry.state = State::Idle;
                let row = Arc::make_mut(&mut entry.row);
                row.figures = nothing(&row.figures);
                row.classic = row.classic.map(|c| c.nothing());
            }
            kept.insert(entry.id.clone(), (entry, age + 1));
        }
        self.last.clone_from(&snapshot.entries);
        let mut entries: Vec<_> = kept.values().map(|(entry, _)| entry.clone()).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        snapshot.entries.extend(entries);
        self.lingering = kept;
    }

    pub(super) fn parts(&mut self) -> (&mut Pivot, &Whole, Plan) {
        let plan = self.source.plan().clone();
        (&mut self.pivot, &self.whole, plan)
    }

    pub(super) const fn files_counted(&self) -> bool {
        self.files
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }
}

/// The same figures, all that are known being 0.
fn nothing(figures: &Figures) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        out.set(*figure, figures.get(*figure).map(|_| 0));
    }
    out
}

/// Whether there is a process with this id, as far as anybody may ask.
#[must_use]
pub fn alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}
