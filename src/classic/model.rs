//! The arithmetic of bcc's `cachestat`, on differences of two samples.

use std::collections::HashMap;

use super::counts::Counter;
use super::counts::Counts;
use super::counts::Known;
use super::counts::Sample;
use crate::figures::Figure;
use crate::figures::Scope;
use crate::model;
use crate::model::Interval;
use crate::model::Row;
use crate::model::Who;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample;

/// The classic figures of an interval or a row. What has no hook on this kernel is unknown, and so is what is made
/// of it.
///
/// The differences are signed and stand as they come out: bcc sets what is below zero to zero, and so hides that
/// the subtraction did not hold (a file written in the same interval as another was read).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures([Option<u64>; 4]);

impl Figures {
    pub(super) fn new(counts: &Counts, known: Known) -> Self {
        Self(Counter::EVENTS.map(|c| known.0[c as usize].then(|| counts.get(c))))
    }

    /// Figures with these values of the four counts, in the order of [`Counter::EVENTS`].
    #[cfg(test)]
    pub(crate) const fn from_counts(counts: [Option<u64>; 4]) -> Self {
        Self(counts)
    }

    /// One of the four counts: pages, but for [`Counter::BufferDirtied`], which are events. `None` where no hook
    /// sees it.
    #[must_use]
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.0.get(counter as usize).copied().flatten()
    }

    fn difference(&self, a: Counter, b: Counter) -> Option<i64> {
        let (a, b) = self.get(a).zip(self.get(b))?;
        Some(i64::try_from(a).unwrap_or(i64::MAX).saturating_sub(i64::try_from(b).unwrap_or(i64::MAX)))
    }

    /// Accesses by reads, as bcc has them: marked accessed less buffers dirtied.
    #[must_use]
    pub fn total(&self) -> Option<i64> {
        self.difference(Counter::Accessed, Counter::BufferDirtied)
    }

    /// Pages that reads brought in, as bcc has them: added less dirtied.
    #[must_use]
    pub fn misses(&self) -> Option<i64> {
        self.difference(Counter::Added, Counter::Dirtied)
    }

    /// What is left of the total without the misses.
    #[must_use]
    pub fn hits(&self) -> Option<i64> {
        Some(self.total()?.saturating_sub(self.misses()?))
    }

    /// Hits per access; `None` when there was no access or either is unknown. Not between 0 and 1 where the
    /// arithmetic does not hold.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let (hits, total) = self.hits().zip(self.total())?;
        (total > 0).then(|| hits as f64 / total as f64)
    }

    /// The same figures, all that are known being 0.
    #[must_use]
    pub fn nothing(&self) -> Self {
        Self(self.0.map(|v| v.map(|_| 0)))
    }

    /// Both together; unknown if either is.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut out = *self;
        for (a, b) in out.0.iter_mut().zip(other.0) {
            *a = a.zip(b).map(|(a, b)| a.saturating_add(b));
        }
        out
    }

    /// What is left of these without the others; unknown where either is, or where more would be taken than there is.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut out = *self;
        for (a, b) in out.0.iter_mut().zip(other.0) {
            *a = a.zip(b).and_then(|(a, b)| a.checked_sub(b));
        }
        out
    }

    /// What rows are ranked by.
    pub(crate) fn busy(&self) -> u64 {
        self.0.iter().flatten().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Puts the classic figures into an interval of the two samples, and into its rows where these are processes. Processes
/// that only the classic engine has seen do not come before those that the exact one ranked.
pub(crate) fn join(
    interval: &mut Interval,
    before: &sample::Sample,
    now: &sample::Sample,
    plan: &Plan,
    processes: bool,
) {
    let Some(now) = &now.classic else { return };
    let none = Sample::default();
    let before = before.classic.as_ref().unwrap_or(&none);
    let total = Figures::new(&now.total.since(&before.total), now.known);
    interval.classic = Some(total);
    if processes {
        rows(interval, before, now, plan);
    }
    if plan.engine == Engine::Classic {
        // The one figure of the contract that both engines count alike.
        let set = |figures: &mut crate::figures::Figures, c: &Figures| {
            figures.set(Figure::BufferDirtied, c.get(Counter::BufferDirtied));
        };
        set(&mut interval.total, &total);
        for row in &mut interval.rows {
            if let Some(c) = row.classic {
                set(&mut row.figures, &c);
            }
        }
    }
}

fn rows(interval: &mut Interval, before: &Sample, now: &Sample, plan: &Plan) {
    let nothing = Figures::new(&Counts::default(), now.known);
    let mut at = HashMap::new();
    for (i, row) in interval.rows.iter_mut().enumerate() {
        row.classic = Some(nothing);
        at.insert(row.who.pid, i);
    }
    let mut others: Vec<(u64, Row)> = Vec::new();
    for p in now.processes.values() {
        let figures = of_process(before, now, p.tgid);
        if let Some(row) = at.get(&Some(p.tgid)).and_then(|i| interval.rows.get_mut(*i)) {
            row.classic = Some(figures);
        } else if figures.busy() > 0 {
            let idle = row_figures(model::figures(&sample::Counters::default(), plan));
            let who = Who {
                pid: Some(p.tgid),
                uid: Some(p.uid),
                comm: Some(p.comm.as_str().into()),
                ..Who::default()
            };
            others.push((figures.busy(), Row { who, figures: idle, classic: Some(figures), back: None }));
        }
    }
    others.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.who.pid.cmp(&y.who.pid)));
    interval.groups += others.len();
    interval.rows.extend(others.into_iter().map(|(_, row)| row));
}

/// Leaves these processes in the total and the rows.
pub(crate) fn narrow(interval: &mut Interval, before: &sample::Sample, now: &sample::Sample, pids: &[u32]) {
    let Some(now) = &now.classic else { return };
    let nothing = Sample::default();
    let before = before.classic.as_ref().unwrap_or(&nothing);
    let none = Figures::new(&Counts::default(), now.known);
    let figures = pids.iter().fold(none, |sum, pid| sum.and(&of_process(before, now, *pid)));
    interval.classic = Some(figures);
    if interval.engine == Engine::Classic.name() {
        interval.total.set(Figure::BufferDirtied, figures.get(Counter::BufferDirtied));
    }
    // Rows that are no process's were made of these processes alone, whom the other engine knows.
    interval.rows.retain(|row| row.who.pid.is_none_or(|pid| pids.contains(&pid)));
    interval.groups = interval.rows.len();
}

fn of_process(before: &Sample, now: &Sample, tgid: u32) -> Figures {
    let of = |s: &Sample| s.processes.get(&tgid).map_or_else(Counts::default, |p| p.counts);
    Figures::new(&of(now).since(&of(before)), now.known)
}

/// What the cache loses is no process's doing.
fn row_figures(mut figures: crate::figures::Figures) -> crate::figures::Figures {
    for figure in Figure::ALL.iter().filter(|f| f.scope() == Scope::Cache) {
        figures.set(*figure, None);
    }
    figures
}
