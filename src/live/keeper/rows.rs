//! The rows of a picture: who did something, what it was counted from, and who has ended meanwhile.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::figures::Figure;
use crate::figures::Figures;
use crate::live::snapshot::Counted;
use crate::live::snapshot::Ended;
use crate::live::snapshot::Entry;
use crate::live::snapshot::From;
use crate::live::snapshot::State;
use crate::live::whole::Whole;
use crate::model;
use crate::model::Row;
use crate::pivot;
use crate::pivot::By;
use crate::pivot::Id;
use crate::pivot::Pivot;
use crate::pivot::Place;
use crate::pivot::Roster;
use crate::pivot::Weights;
use crate::pivot::Who;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Counters;
use crate::sample::Sample;

/// The rows of an interval, what they were counted from, and how many of those that did something have ended.
pub(super) type Rows = (Vec<Entry>, Arc<Counted>, Option<u64>);

/// Who did something in an interval.
pub(super) struct Present<'a> {
    roster: &'a Roster,
    entries: &'a [Entry],
    /// All of them, made when the roster does not know.
    ids: OnceCell<HashSet<&'a Id>>,
}

impl<'a> Present<'a> {
    pub(super) const fn new(roster: &'a Roster, entries: &'a [Entry]) -> Self {
        Self { roster, entries, ids: OnceCell::new() }
    }

    pub(super) fn has(&self, entry: &Entry) -> bool {
        let known = entry.member.and_then(|at| self.roster.is_present(at, entry.id()));
        // A row that was watched for long may have come back under another number.
        let ids = || self.ids.get_or_init(|| self.entries.iter().map(Entry::id).collect());
        known.unwrap_or_else(|| ids().contains(entry.id()))
    }
}

/// Who is asked whether processes have ended.
#[derive(Clone, Copy)]
pub(super) struct Asks<'a> {
    pub ended: Ended,
    pub gone: &'a dyn Fn(u32) -> bool,
    /// This row stays as it is.
    pub watched: Option<&'a Id>,
}

impl Asks<'_> {
    fn watches(&self, by: By, number: u32) -> bool {
        match self.watched {
            Some(Id::Number(n)) if by == By::Process => *n == u64::from(number),
            Some(Id::Number(n)) if by == By::Thread => *n & u64::from(u32::MAX) == u64::from(number),
            _ => false,
        }
    }

    /// Of a row that did something.
    fn state(&self, by: By, who: &Who) -> State {
        let number = match by {
            By::Process => who.pid,
            By::Thread => who.tid,
            _ => None,
        };
        match number.filter(|_| self.ended != Ended::Unasked) {
            Some(number) if (self.gone)(number) => State::Ended,
            _ => State::Active,
        }
    }
}

/// What rows are made of.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// Two samples in a row.
    Interval(&'a Arc<Sample>, &'a Arc<Sample>),
    /// What all together have counted. The next one will be added to it.
    Whole(&'a Whole),
}

/// The rows that did something, and what they were counted from.
pub(super) fn rows(
    pivot: &mut Pivot,
    roster: &mut Roster,
    plan: &Plan,
    (by, part, asks): (By, Part<'_>, Asks<'_>),
) -> Rows {
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
    if plan.engine != Engine::Exact || by == By::Evictor {
        let rows = pivot.below(&line, (before, now), plan, &|_| false).rows;
        let entry = |row: Row| {
            let state = asks.state(by, &row.who);
            Entry::new(by, row, state)
        };
        let entries: Vec<_> = rows.into_iter().map(entry).collect();
        let ended = entries.iter().filter(|e| e.state.is_over()).count() as u64;
        return (entries, Arc::default(), Some(ended));
    }
    let known = pivot::known(plan, files);
    let weights = Weights::new(&known);
    let asked = asks.ended != Ended::Unasked;
    let ended = if asked { pivot.ended(now, files, &weights, asks.gone) } else { Some(0) };
    let mut gone = |number| (asks.gone)(number) && !asks.watches(by, number);
    let mut counted = Counted { sample: None, files, sums: pivot.call(roster, now, files, &mut gone), known };
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
        let ended = roster.member(at).ended;
        let state = if ended.is_some() { State::Active } else { asks.state(by, &named.who) };
        entries.push(Entry { named, state, ended, seconds: None, busy, from, member: Some(at) });
    }
    roster.present = present;
    let known = |counters: &Counters| model::known_figures(counters, &known);
    let rest = pivot::rest(&known(&line), &known(&shown));
    if !pivot::idle(&rest) {
        let row = Row { who: pivot::nobody(), figures: rest, classic: None, back: None };
        entries.push(Entry::new(by, row, State::Active));
    }
    if let Part::Interval(_, now) = part {
        counted.sample = Some(now.clone());
    }
    (entries, Arc::new(counted), ended)
}

/// The same figures, all that are known being 0.
pub(crate) fn nothing(figures: &Figures) -> Figures {
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
