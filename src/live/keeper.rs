//! From samples to what a live view shows: rows of the pivot requested, and rows that have just gone.
//!
//! It runs in the thread that samples. All that may take its time happens here: tables of the kernel, names of users,
//! paths of cgroups.

mod asked;
mod rows;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::live::Live;
use crate::live::machine::Pulse;
use crate::live::machine::Watch;
use crate::live::past::Past;
use crate::live::snapshot::Counted;
pub use crate::live::snapshot::Ended;
use crate::live::snapshot::Entry;
use crate::live::snapshot::From;
use crate::live::snapshot::Show;
use crate::live::snapshot::Snapshot;
use crate::live::snapshot::State;
pub use crate::live::snapshot::View;
use crate::live::whole::Whole;
use crate::model::Interval;
use crate::pivot::By;
use crate::pivot::Filter;
pub use crate::pivot::Id;
use crate::pivot::Pivot;
use crate::pivot::Roster;
use crate::sample::Sample;
use crate::sample::Source;
use rows::Asks;
use rows::Part;
use rows::Present;
pub use rows::alive;
pub(crate) use rows::nothing;

/// How many intervals a row stays that does nothing any more.
const LINGER: u32 = 3;
/// How many of these there are at most: a storm of short processes would bury the others.
const LINGERING: usize = 1000;

/// The two samples on the screen while it is paused, and what else stands still with them.
struct Held {
    before: Arc<Sample>,
    now: Arc<Sample>,
    whole: Option<Whole>,
    gone: Gone,
    pulse: Option<Pulse>,
    number: u64,
    /// It is not the last interval, but one of those before.
    past: bool,
    /// Rows of threads, and of files, are missing in it.
    cut: (bool, bool),
}

/// Who has ended, each asked once for a picture.
type Gone = RefCell<HashMap<u32, bool>>;

/// Keeps the samples and makes snapshots of them.
pub struct Keeper<'a> {
    live: Live<'a>,
    pivot: Pivot,
    filter: Filter,
    files: bool,
    alive: Box<dyn Fn(u32) -> bool>,
    whole: Option<Whole>,
    held: Option<Held>,
    gone: Gone,
    past: Option<Past>,
    watch_machine: Option<Watch>,
    pulse: Option<Pulse>,
    /// How many intervals there were.
    number: u64,
    /// Who is in the rows, and who in the threads below them.
    rosters: [Roster; 2],
    lingering: HashMap<Id, (Entry, u32)>,
    lingers: bool,
    /// The rows of the last interval: so many of the entries.
    last: (Arc<Vec<Entry>>, usize, Arc<Counted>),
    last_view: Option<View>,
    /// Length in seconds of the interval that those were of.
    length: f64,
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
            gone: Gone::default(),
            past: None,
            watch_machine: None,
            pulse: None,
            number: 0,
            rosters: [By::Process, By::Thread].map(|by| Roster::new(by, Ended::Unasked)),
            lingering: HashMap::new(),
            lingers: true,
            last: (Arc::default(), 0, Arc::default()),
            last_view: None,
            length: 0.0,
            watched: None,
        })
    }

    /// Keeps the last ten minutes as well, and looks at the machine.
    #[must_use]
    pub fn with_past(mut self, machine: Option<Watch>) -> Self {
        self.past = Some(Past::default());
        self.watch_machine = machine;
        self
    }

    /// Adds nothing up: for those who never ask for what came since the start.
    #[must_use]
    pub fn without_totals(mut self) -> Self {
        self.whole = None;
        self
    }

    /// Keeps no rows of intervals before: for those who write each of them down.
    #[must_use]
    pub const fn without_lingering(mut self) -> Self {
        self.lingers = false;
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

    /// Where the samples come from.
    pub fn source(&mut self) -> &mut (dyn Source + 'a) {
        self.live.source()
    }

    /// Reads a sample and shows the interval that it ends.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tick(&mut self, view: View) -> anyhow::Result<Snapshot> {
        self.live.tick()?;
        self.gone.borrow_mut().clear();
        if let Some(whole) = &mut self.whole {
            whole.add(self.live.now(), &self.filter, self.pivot.names.as_mut(), &self.alive);
        }
        let (before, now) = self.last_two();
        self.number += 1;
        self.pulse = self.watch_machine.as_mut().and_then(Watch::beat);
        if let Some(mut past) = self.past.take() {
            if now.classic.is_none() {
                past.keep(self.number, (&before, &now), self.pulse, &|number| self.gone(number));
            }
            self.past = Some(past);
        }
        let mut snapshot = match self.held.take() {
            None => self.snapshot((&before, &now), view),
            // Only what is said of the system as a whole is looked at.
            Some(held) => {
                let snapshot = self.system(&before, &now, view);
                self.held = Some(held);
                Snapshot { held: true, ..snapshot }
            }
        };
        // A picture that stands still keeps its rows; the new interval goes into the history only.
        if self.held.is_none() && self.lingers {
            self.linger(&mut snapshot);
        }
        snapshot.fresh = true;
        Ok(snapshot)
    }

    /// Shows the same interval in another way.
    pub fn again(&mut self, view: View) -> Snapshot {
        let (before, now) = match &self.held {
            Some(held) => (held.before.clone(), held.now.clone()),
            None => self.last_two(),
        };
        let mut snapshot = self.snapshot((&before, &now), view);
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
        self.held = hold.then(|| {
            let (before, now) = self.last_two();
            // Who asks for totals while the picture stands still gets those that stand still with it.
            let (whole, gone) = (self.whole.clone(), self.gone.clone());
            Held {
                before,
                now,
                whole,
                gone,
                pulse: self.pulse,
                number: self.number,
                past: false,
                cut: (false, false),
            }
        });
    }

    /// Shows an interval of those before; `None`: the last one again.
    pub fn look_back(&mut self, number: Option<u64>) {
        let there = number.and_then(|number| self.past.as_ref()?.unpack(number));
        self.held = there.map(|there| Held {
            before: Arc::new(there.before),
            now: Arc::new(there.now),
            // How much it was by then was not kept.
            whole: None,
            gone: RefCell::new(there.gone.into_iter().collect()),
            pulse: there.pulse,
            number: there.number,
            past: true,
            cut: there.cut,
        });
        // Who lingered is of another time.
        self.last_view = None;
    }

    /// The row that must not go away while somebody looks at it.
    pub fn watch(&mut self, id: Option<Id>) {
        self.watched = id;
    }

    /// What is said of the system as a whole; no rows.
    fn system(&mut self, before: &Arc<Sample>, now: &Arc<Sample>, view: View) -> Snapshot {
        self.pivot.filter.clone_from(&self.filter);
        // Rows of evictors and of files are counted apart, and so is the line above them.
        self.pivot.by = Some(view.by).filter(|by| *by == By::Evictor);
        let files = self.pivot.files() || view.by.files();
        let plan = self.live.plan();
        let system = match self.pivot.by {
            Some(_) => self.pivot.interval(before, now, plan),
            None => self.pivot.without_rows(before, now, plan, files),
        };
        Snapshot {
            system: Interval { rows: Vec::new(), groups: 0, ..system },
            entries: Arc::default(),
            threads: Arc::default(),
            ended: Some(0),
            cut: false,
            view,
            fresh: false,
            held: false,
            early: false,
            pulse: self.pulse,
            number: self.number,
            oldest: self.past.as_ref().and_then(Past::oldest).unwrap_or(self.number),
            counted: Arc::default(),
            threads_counted: Arc::default(),
        }
    }

    fn snapshot(&mut self, (before, now): (&Arc<Sample>, &Arc<Sample>), mut view: View) -> Snapshot {
        if view.show == Show::Total && self.held.as_ref().is_some_and(|h| h.past) {
            view.show = Show::Count;
        }
        self.begin(view);
        let mut out = self.system(before, now, view);
        if let Some(held) = &self.held {
            (out.pulse, out.number) = (held.pulse, held.number);
        }
        let plan = self.live.plan();
        let held = self.held.as_ref();
        let part = match (view.show, held.map_or(&self.whole, |h| &h.whole)) {
            (Show::Total, Some(whole)) => Part::Whole(whole),
            _ => Part::Interval(before, now),
        };
        let (known, alive) = (held.map_or(&self.gone, |h| &h.gone), &self.alive);
        let gone = |number| *known.borrow_mut().entry(number).or_insert_with(|| !alive(number));
        let asks = Asks { ended: view.ended, gone: &gone, watched: self.watched.as_ref() };
        let [rows, threads] = &mut self.rosters;
        let (entries, counted, ended) = rows::rows(&mut self.pivot, rows, plan, (view.by, part, asks));
        (out.entries, out.counted, out.ended) = (Arc::new(entries), counted, ended);
        let cut = held.map_or((false, false), |h| h.cut);
        // Rows of evictors are kept apart from these.
        out.cut = view.by != By::Evictor && if self.pivot.files() { cut.1 } else { cut.0 };
        if view.threads && view.by == By::Process {
            let asks = Asks { ended: Ended::Unasked, ..asks };
            let below = rows::rows(&mut self.pivot, threads, plan, (By::Thread, part, asks));
            (out.threads, out.threads_counted) = (Arc::new(below.0), below.1);
        }
        out
    }

    fn begin(&mut self, view: View) {
        let same = |a: View| {
            a.by == view.by && a.ended == view.ended && (a.show == Show::Total) == (view.show == Show::Total)
        };
        if !self.last_view.is_some_and(same) {
            self.lingering.clear();
            self.last = (Arc::default(), 0, Arc::default());
            self.rosters = [Roster::new(view.by, view.ended), Roster::new(By::Thread, Ended::Unasked)];
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
                    self.settle(own, (snapshot, &present), 0, &mut kept);
                }
            }
            for (entry, age) in self.lingering.values().filter(|(e, _)| !present.has(e)) {
                if wanted(entry, *age, kept.len()) {
                    self.settle(entry.clone(), (snapshot, &present), *age, &mut kept);
                }
            }
            let mut entries: Vec<_> = kept.values().map(|(entry, _)| entry.clone()).collect();
            entries.sort_by(|a, b| a.id().cmp(b.id()));
            Arc::make_mut(&mut snapshot.entries).extend(entries);
            self.lingering = kept;
        }
        self.length = snapshot.system.seconds;
        self.last = (snapshot.entries.clone(), number, snapshot.counted.clone());
    }

    /// What became of a row that did nothing.
    fn settle(
        &self,
        mut entry: Entry,
        (snapshot, present): (&Snapshot, &Present<'_>),
        age: u32,
        kept: &mut HashMap<Id, (Entry, u32)>,
    ) {
        let who = &entry.named.who;
        let number = if snapshot.view.by == By::Thread { who.tid } else { who.pid };
        let over = entry.ended.is_none() && number.is_some_and(|n| self.gone(n));
        let watched = Some(entry.id()) == self.watched.as_ref();
        let ended = snapshot.view.ended;
        if over && ended == Ended::Parent && !watched {
            // Whose child it was, only those know that did something.
            return;
        }
        if over && ended.folds() && !watched {
            // It ended without another word: the row of those that ended says so, once.
            let named = Arc::new(ended.together(who, true));
            let together = Entry { named, ended: Some(1), member: None, ..entry };
            if present.has(&together) || kept.contains_key(together.id()) {
                return;
            }
            entry = together;
        } else if over {
            if entry.state == State::Active || entry.state == State::Ended {
                entry.seconds = entry.seconds.or(Some(self.length));
            }
            entry.state = State::Gone;
        }
        if entry.state != State::Idle && entry.state != State::Gone {
            (entry.state, entry.busy) = (State::Idle, 0);
            if let From::Row(row) = &mut entry.from {
                let row = Arc::make_mut(row);
                row.who.clone_from(&entry.named.who);
                row.figures = nothing(&row.figures);
                row.classic = row.classic.map(|c| c.nothing());
                row.back = row.back.map(|_| 0);
            }
        }
        kept.insert(entry.id().clone(), (entry, age + 1));
    }

    fn gone(&self, number: u32) -> bool {
        *self.gone.borrow_mut().entry(number).or_insert_with(|| !(self.alive)(number))
    }
}
