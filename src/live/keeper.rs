//! From samples to what a live view shows: rows of the pivot requested, and rows that have just gone.
//!
//! It runs in the thread that samples. All that may take its time happens here: tables of the kernel, names of users,
//! paths of cgroups.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::Live;
use crate::live::snapshot::Counted;
use crate::live::snapshot::Entry;
use crate::live::snapshot::From;
use crate::live::snapshot::Show;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::State;
pub use crate::live::snapshot::View;
use crate::live::whole::Whole;
use crate::model;
use crate::model::Row;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Filter;
pub use crate::pivot::Id;
use crate::pivot::Pivot;
use crate::pivot::Place;
use crate::pivot::Roster;
use crate::pivot::Weights;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Counters;
use crate::sample::Sample;
use crate::sample::Source;

/// How many intervals a row stays that does nothing any more.
const LINGER: u32 = 3;
/// How many of these there are at most: a storm of short processes would bury the others.
const LINGERING: usize = 1000;

/// The rows of an interval, and what they were counted from.
type Rows = (Vec<Entry>, Arc<Counted>);

/// Keeps the samples and makes snapshots of them.
pub struct Keeper<'a> {
    live: Live<'a>,
    pivot: Pivot,
    filter: Filter,
    files: bool,
    alive: Box<dyn Fn(u32) -> bool>,
    whole: Option<Whole>,
    /// The two samples on the screen while it is paused.
    held: Option<(Arc<Sample>, Arc<Sample>)>,
    /// Who is in the rows, and who in the threads below them.
    rosters: [Roster; 2],
    lingering: HashMap<Id, (Entry, u32)>,
    /// The rows of the last interval: so many of the entries.
    last: (Arc<Vec<Entry>>, usize, Arc<Counted>),
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
        let live = Live::new(source)?;
        Ok(Self {
            filter: pivot.filter.clone(),
            files,
            alive,
            whole: Some(Whole::new(live.now(), &pivot.filter)),
            live,
            pivot: Pivot { top: usize::MAX, ..pivot },
            held: None,
            rosters: [Roster::new(By::Process), Roster::new(By::Thread)],
            lingering: HashMap::new(),
            last: (Arc::default(), 0, Arc::default()),
            last_view: None,
            watched: None,
        })
    }

    /// Adds nothing up: for those who never ask for what came since the start.
    #[must_use]
    pub fn without_totals(mut self) -> Self {
        self.whole = None;
        self
    }

    /// So little room that tests need few rows: see [`Whole`].
    #[cfg(test)]
    pub(crate) fn with_little_room(mut self) -> Self {
        self.whole = Some(Whole::with_little_room(self.live.now(), &self.filter));
        self
    }

    /// The rows that are kept, and those that were put together.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    pub(crate) fn kept(&self) -> [usize; 4] {
        let sum = &self.whole.as_ref().unwrap().sum;
        let folded = &sum.folded;
        [sum.rows.len(), sum.files.len(), folded.threads.len(), folded.files.len()]
    }

    /// Reads a sample and shows the interval that it ends.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tick(&mut self, view: View) -> anyhow::Result<Snapshot> {
        self.live.tick()?;
        if let Some(whole) = &mut self.whole {
            whole.add(self.live.now(), &self.filter, self.pivot.names.as_mut(), &self.alive);
        }
        let (before, now) = self.last_two();
        let mut snapshot = self.snapshot(&before, &now, view);
        // A picture that stands still keeps its rows; the new interval goes into the history only.
        if self.held.is_none() {
            self.linger(&mut snapshot);
        }
        snapshot.fresh = true;
        Ok(snapshot)
    }

    /// Shows the same interval in another way.
    pub fn again(&mut self, view: View) -> Snapshot {
        let (before, now) = self.held.clone().unwrap_or_else(|| self.last_two());
        let mut snapshot = self.snapshot(&before, &now, view);
        let number = snapshot.entries.len();
        if view.show != Show::Total {
            let present = Present::new(&self.rosters[0], &snapshot.entries);
            let kept = self.lingering.values().map(|(entry, _)| entry);
            let kept: Vec<_> = kept.filter(|e| !present.has(e)).cloned().collect();
            Arc::make_mut(&mut snapshot.entries).extend(kept);
        }
        self.last = (snapshot.entries.clone(), number, snapshot.counted.clone());
        snapshot
    }

    fn last_two(&self) -> (Arc<Sample>, Arc<Sample>) {
        (self.live.before().clone(), self.live.now().clone())
    }

    /// When the last sample was read.
    #[must_use]
    pub const fn read(&self) -> Instant {
        self.live.read()
    }

    /// Holds the picture, or lets it go.
    pub fn hold(&mut self, hold: bool) {
        self.held = hold.then(|| self.last_two());
    }

    /// The row that must not go away while somebody looks at it.
    pub fn watch(&mut self, id: Option<Id>) {
        self.watched = id;
    }

    fn snapshot(&mut self, before: &Arc<Sample>, now: &Arc<Sample>, view: View) -> Snapshot {
        self.begin(view);
        let plan = self.live.plan();
        self.pivot.filter.clone_from(&self.filter);
        self.pivot.by = None;
        let system = self.pivot.interval(before, now, plan);
        let part = match (view.show, &self.whole) {
            (Show::Total, Some(whole)) => Part::Whole(whole),
            _ => Part::Interval(before, now),
        };
        let [rows, threads] = &mut self.rosters;
        let (entries, counted) = self::rows(&mut self.pivot, rows, plan, (view.by, part));
        let below = match view.threads && view.by == By::Process {
            true => self::rows(&mut self.pivot, threads, plan, (By::Thread, part)),
            false => Rows::default(),
        };
        Snapshot {
            system,
            entries: Arc::new(entries),
            threads: Arc::new(below.0),
            view,
            fresh: false,
            counted,
            threads_counted: below.1,
        }
    }

    fn begin(&mut self, view: View) {
        let same = |a: View| a.by == view.by && (a.show == Show::Total) == (view.show == Show::Total);
        if !self.last_view.is_some_and(same) {
            self.lingering.clear();
            self.last = (Arc::default(), 0, Arc::default());
            self.rosters = [Roster::new(view.by), Roster::new(By::Thread)];
        }
        self.last_view = Some(view);
    }

    /// Adds the rows that did something a short while ago.
    fn linger(&mut self, snapshot: &mut Snapshot) {
        let number = snapshot.entries.len();
        if snapshot.view.show != Show::Total {
            let mut kept: HashMap<Id, (Entry, u32)> = HashMap::new();
            let (last, rows, counted) = std::mem::take(&mut self.last);
            let present = Present::new(&self.rosters[0], &snapshot.entries);
            let wanted = |entry: &Entry, age: u32, kept: usize| {
                Some(entry.id()) == self.watched.as_ref() || (age < LINGER && kept < LINGERING)
            };
            // Most rows of the last interval are in this one as well: looked at before they are copied.
            let own = last.iter().take(rows).filter(|e| !e.named.who.other);
            for entry in own.filter(|e| !present.has(e)) {
                if wanted(entry, 0, kept.len()) {
                    let own = Entry { from: From::Row(Arc::new(counted.row(entry))), ..entry.clone() };
                    kept.insert(entry.id().clone(), (self.settled(own), 1));
                }
            }
            for (entry, age) in self.lingering.values().filter(|(e, _)| !present.has(e)) {
                if wanted(entry, *age, kept.len()) {
                    kept.insert(entry.id().clone(), (self.settled(entry.clone()), age + 1));
                }
            }
            let mut entries: Vec<_> = kept.values().map(|(entry, _)| entry.clone()).collect();
            entries.sort_by(|a, b| a.id().cmp(b.id()));
            Arc::make_mut(&mut snapshot.entries).extend(entries);
            self.lingering = kept;
        }
        self.last = (snapshot.entries.clone(), number, snapshot.counted.clone());
    }

    /// What became of a row that did nothing.
    fn settled(&self, mut entry: Entry) -> Entry {
        if entry.named.who.pid.is_some_and(|pid| !(self.alive)(pid)) {
            entry.state = State::Ended;
        } else if entry.state == State::Active {
            (entry.state, entry.busy) = (State::Idle, 0);
            if let From::Row(row) = &mut entry.from {
                let row = Arc::make_mut(row);
                row.figures = nothing(&row.figures);
                row.classic = row.classic.map(|c| c.nothing());
            }
        }
        entry
    }

    pub(crate) fn parts(&mut self) -> Option<(&mut Pivot, &Whole, Plan)> {
        let plan = self.live.plan().clone();
        Some((&mut self.pivot, self.whole.as_ref()?, plan))
    }

    pub(crate) const fn files_counted(&self) -> bool {
        self.files
    }

    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }
}

/// Who did something in an interval.
struct Present<'a> {
    roster: &'a Roster,
    entries: &'a [Entry],
    /// All of them, made when the roster does not know.
    ids: OnceCell<HashSet<&'a Id>>,
}

impl<'a> Present<'a> {
    const fn new(roster: &'a Roster, entries: &'a [Entry]) -> Self {
        Self { roster, entries, ids: OnceCell::new() }
    }

    fn has(&self, entry: &Entry) -> bool {
        let known = entry.member.and_then(|at| self.roster.is_present(at, entry.id()));
        // A row that was watched for long may have come back under another number.
        let ids = || self.ids.get_or_init(|| self.entries.iter().map(Entry::id).collect());
        known.unwrap_or_else(|| ids().contains(entry.id()))
    }
}

/// What rows are made of.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// Two samples in a row.
    Interval(&'a Arc<Sample>, &'a Arc<Sample>),
    /// What all together have counted. The next one will be added to it.
    Whole(&'a Whole),
}

/// The rows that did something, and what they were counted from.
fn rows(pivot: &mut Pivot, roster: &mut Roster, plan: &Plan, (by, part): (By, Part<'_>)) -> Rows {
    let (before, now) = match part {
        Part::Interval(before, now) => (before.as_ref(), now.as_ref()),
        Part::Whole(whole) => (&whole.first, &whole.sum),
    };
    pivot.by = Some(by);
    let files = pivot.files();
    let line = match part {
        Part::Interval(..) => pivot.line(before, now, files),
        Part::Whole(whole) => whole.line(files),
    };
    if plan.engine != Engine::Exact {
        let rows = pivot.below(&line, before, now, plan).rows;
        return (rows.into_iter().map(|r| Entry::new(by, r, State::Active)).collect(), Arc::default());
    }
    let known = pivot::known(plan, files);
    let weights = Weights::new(&known);
    let mut counted = Counted { sample: None, files, sums: pivot.call(roster, now, files), known };
    let present = std::mem::take(&mut roster.present);
    let mut entries = Vec::with_capacity(present.len() + 1);
    let mut shown = Counters::default();
    for at in present.iter().copied() {
        let mut place = roster.member(at).place;
        let Some(counters) = (match place {
            Place::Row(row) => pivot::counters(now, files, row),
            Place::Sum(n) => counted.sums.get(n),
        }) else {
            continue;
        };
        let Some(busy) = weights.weigh(counters) else { continue };
        let latest = roster.member(at).latest;
        if matches!(part, Part::Whole(whole) if whole.is_forgotten(by, files, latest)) {
            continue;
        }
        shown.add_sparse(counters);
        if let (Part::Whole(..), Place::Row(_)) = (part, place) {
            let counters = counters.clone();
            place = Place::Sum(counted.sums.len());
            counted.sums.push(counters);
        }
        let Some(named) = roster.named(at, now, files, pivot.names.as_mut()) else { continue };
        roster.list(at);
        let from = From::Counters(place);
        entries.push(Entry { named, state: State::Active, busy, from, member: Some(at) });
    }
    roster.present = present;
    let known = |counters: &Counters| model::known_figures(counters, &known);
    let rest = pivot::rest(&known(&line), &known(&shown));
    if !pivot::idle(&rest) {
        let row = Row { who: pivot::nobody(), figures: rest, classic: None };
        entries.push(Entry::new(by, row, State::Active));
    }
    if let Part::Interval(_, now) = part {
        counted.sample = Some(now.clone());
    }
    (entries, Arc::new(counted))
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
