//! Pivots: what happened, added up by process, thread, name, user, cgroup, file, mount or device.
//!
//! Pure but for [`crate::names`], which knows what numbers are called. Threads come with the rows of a sample, files with
//! its file rows: whoever asks for files by who used them gets these added up by owner.

pub mod by;
mod ended;
mod evictors;
mod filter;
mod id;
mod item;
mod other;
mod roster;
mod wanted;
mod weight;

pub use by::By;
pub use ended::Ended;
pub(crate) use ended::Families;
pub use filter::Filter;
pub use filter::User;
pub use id::Id;
pub use id::Subject;
pub(crate) use item::Item;
pub(crate) use item::of_file;
pub(crate) use item::of_row;
pub(crate) use other::OTHER;
pub(crate) use other::both;
pub use other::label;
pub(crate) use other::nobody;
pub(crate) use other::rest;
pub(crate) use roster::Place;
pub(crate) use roster::Roster;
pub(crate) use roster::counters;
pub use wanted::Choice;
pub(crate) use wanted::in_order;
pub(crate) use weight::PAGE;
pub(crate) use weight::Weights;
pub(crate) use weight::busy;
pub(crate) use weight::idle;

pub use crate::model::Who;
pub use crate::names::System;

use std::collections::HashSet;

use crate::classic;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::model;
use crate::model::Interval;
use crate::model::Row;
use crate::names::Names;
use crate::names::Recorded;
use crate::plan::Plan;
use crate::sample::Counters;
use crate::sample::Histograms;
use crate::sample::Sample;
use crate::sample::Sparse;

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
        self.below(&line, (before, now), plan, &|_| false)
    }

    /// The same with another line above the rows. `forgotten` is asked whether what a row of the sample belongs to has no row any
    /// more.
    pub(crate) fn below(
        &mut self,
        line: &Counters,
        (before, now): (&Sample, &Sample),
        plan: &Plan,
        forgotten: &dyn Fn(usize) -> bool,
    ) -> Interval {
        let files = self.files();
        let (mut out, mut rows_line) = self.above(line, (before, now), plan, files);
        if self.by == Some(By::Evictor) {
            rows_line = evictors::put(&mut out, (before, now), plan, &self.filter, self.names.as_mut());
        } else if let Some(by) = self.by {
            (out.rows, out.groups) = self.rows(by, now, plan, (files, forgotten));
        }
        classic::join(&mut out, before, now, plan, self.by == Some(By::Process));
        if !self.filter.pids.is_empty() {
            classic::narrow(&mut out, before, now, &self.filter.pids);
        }
        out.rows.truncate(self.top);
        if let Some(by) = self.by {
            let rest = other::row(&out, rows_line, by);
            out.rows.extend(rest);
        }
        out
    }

    /// Asks what the cgroups of these rows hold of the cache.
    pub(crate) fn hold(&mut self, rows: &mut [Row]) {
        let path = |row: &Row| row.who.cgroup.as_ref().map(|path| path.raw().into_owned());
        let held = self.names.held(&rows.iter().filter_map(path).collect::<Vec<_>>());
        let of_groups = rows.iter_mut().filter(|row| row.who.cgroup.is_some());
        of_groups.zip(held).for_each(|(row, held)| row.who.held = Some(held));
    }

    /// The line above the rows, without them.
    pub(crate) fn without_rows(
        &mut self,
        before: &Sample,
        now: &Sample,
        plan: &Plan,
        files: bool,
    ) -> Interval {
        let line = self.line(before, now, files);
        let (mut out, _) = self.above(&line, (before, now), plan, files);
        classic::join(&mut out, before, now, plan, false);
        if !self.filter.pids.is_empty() {
            classic::narrow(&mut out, before, now, &self.filter.pids);
        }
        out
    }

    /// An interval with this line, and what the rows below it are parts of.
    fn above(
        &mut self,
        line: &Counters,
        (before, now): (&Sample, &Sample),
        plan: &Plan,
        files: bool,
    ) -> (Interval, Figures) {
        let mut out = model::whole(before, now, plan);
        let mut rows_line = owned(line, plan, files);
        if self.filter.is_empty() {
            out.total = model::figures(line, plan);
        } else {
            // What found no room may be what was chosen.
            let lacks = |c| now.total.get(c) > before.total.get(c);
            let lacks = self.filter.depends_on(files).into_iter().flatten().any(lacks);
            if lacks {
                rows_line = Figures::unknown();
            }
            out.total = rows_line.clone();
            // Those of the whole system are not of what was chosen.
            out.histograms = out.histograms.filter(|_| !lacks).and_then(|_| self.histograms(now));
        }
        (out, rows_line)
    }

    /// Read calls of what the filter leaves, by latency: of threads only, and of these only where each has a row of its own.
    fn histograms(&mut self, now: &Sample) -> Option<Box<Histograms>> {
        if self.filter.files() || !now.folded.threads.is_empty() {
            return None;
        }
        let mut sum = Box::<Histograms>::default();
        for row in &now.rows {
            let Some(own) = &row.latency else { continue };
            if self.filter.takes(&item::of_row(row), self.names.as_mut()) {
                sum.add(own);
            }
        }
        Some(sum)
    }

    /// What was counted of the whole system, or of what the filter leaves of it: the line above the rows.
    pub(crate) fn line(&mut self, before: &Sample, now: &Sample, files: bool) -> Counters {
        if self.filter.is_empty() {
            return model::line(before, now, files);
        }
        let mut sum = Counters::default();
        for item in item::items(now, files).filter(|i| self.filter.takes(i, self.names.as_mut())) {
            sum.add_sparse(item.counters);
        }
        sum
    }

    /// Puts the rows of a sample together that stand for the same; see [`Roster::call`].
    pub(crate) fn call(
        &mut self,
        roster: &mut Roster,
        now: &Sample,
        files: bool,
        gone: &mut dyn FnMut(u32) -> bool,
    ) -> Vec<Sparse> {
        roster.call(now, files, (&self.filter, gone), self.names.as_mut())
    }

    /// How many of those that did something have ended, each counted once, however many names it had and however they are
    /// shown: threads in rows of threads, processes in those of processes, none in others. `None` where it is not known of
    /// some: what was put away to make room does not say how many it was.
    pub(crate) fn ended(
        &mut self,
        now: &Sample,
        files: bool,
        weights: &Weights,
        gone: &dyn Fn(u32) -> bool,
    ) -> Option<u64> {
        let Some(by) = self.by.filter(|by| matches!(by, By::Process | By::Thread)) else { return Some(0) };
        let mut ended = HashSet::new();
        for item in item::items(now, files) {
            if item.is_away() {
                return None;
            }
            let number = if by == By::Thread { item.tid } else { item.tgid };
            if !ended.contains(&number)
                && gone(number)
                && weights.weigh(item.counters).is_some()
                && self.filter.counts(by, &item, self.names.as_mut())
            {
                ended.insert(number);
            }
        }
        Some(ended.len() as u64)
    }

    fn rows(
        &mut self,
        by: By,
        now: &Sample,
        plan: &Plan,
        (files, forgotten): (bool, &dyn Fn(usize) -> bool),
    ) -> (Vec<Row>, usize) {
        let mut roster = Roster::new(by, Ended::Unasked);
        let sums = self.call(&mut roster, now, files, &mut |_| false);
        let known = known(plan, files);
        let group = |at: &usize| {
            let member = roster.member(*at);
            if forgotten(member.latest) {
                return None;
            }
            let counters = match member.place {
                Place::Row(row) => counters(now, files, row)?,
                Place::Sum(n) => sums.get(n)?,
            };
            let figures = model::known_figures(&counters.all(), &known);
            let item = item::item(now, files, member.latest).filter(|_| !idle(&figures))?;
            Some((busy(&figures), item, figures))
        };
        let mut ranked: Vec<_> = roster.present.iter().filter_map(group).collect();
        ranked.sort_by_key(|(busy, i, _)| {
            (std::cmp::Reverse(*busy), i.tgid, i.tid, i.file.map(|(f, _)| f.inode))
        });
        let number = ranked.len();
        ranked.truncate(self.top);
        let name = |(_, item, figures): (u64, Item<'_>, Figures)| Row {
            who: item::who(by, &item, self.names.as_mut()),
            figures,
            classic: None,
            back: None,
        };
        (ranked.into_iter().map(name).collect(), number)
    }
}

/// What happened from `before` to `now`, which must be two samples of one source in a row, with a row for each process.
/// Users and cgroups have no names here: [`Pivot::interval`] gives them.
#[must_use]
pub fn interval(before: &Sample, now: &Sample, plan: &Plan) -> Interval {
    let mut out = model::whole(before, now, plan);
    let (by, names) = (Some(By::Process), Box::<Recorded>::default());
    let mut pivot = Pivot { by, top: usize::MAX, filter: Filter::default(), names };
    (out.rows, out.groups) = pivot.rows(By::Process, now, plan, (false, &|_| false));
    classic::join(&mut out, before, now, plan, true);
    out
}

/// Figures of a part of the system.
fn owned(counters: &Counters, plan: &Plan, files: bool) -> Figures {
    model::known_figures(counters, &known(plan, files))
}

/// Which figures a part of the system can have.
pub(crate) fn known(plan: &Plan, files: bool) -> [bool; FIGURES] {
    let mut known = model::known(plan);
    for figure in Figure::ALL.iter().filter(|f| plan.whole_only(**f) || files && !f.by_file()) {
        known[*figure as usize] = false;
    }
    known
}

#[cfg(test)]
mod tests;
