//! From two samples to an interval: the only place where differences and rates are made.

mod who;

pub use who::Who;

use crate::classic;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::plan::Plan;
use crate::sample::Counters;
use crate::sample::Histograms;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::Sample;

/// One row of a pivot.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is about.
    pub who: Who,
    /// What came of it in the interval.
    pub figures: Figures,
    /// The same by the classic engine, where it runs.
    pub classic: Option<classic::Figures>,
    /// Pages that came back after they had been pushed out by whom the row is about; `None`: it is about something
    /// else, or that is not known.
    pub back: Option<u64>,
}

/// What happened between two samples.
#[derive(Debug, Clone)]
pub struct Interval {
    /// End of the interval.
    pub time: jiff::Timestamp,
    /// Its length in seconds, by the monotonic clock.
    pub seconds: f64,
    /// Name of the engine.
    pub engine: &'static str,
    /// Figures of the whole system, or of what was chosen by a filter.
    pub total: Figures,
    /// The same by the classic engine, where it runs.
    pub classic: Option<classic::Figures>,
    /// Of rows of those who push pages out: pages that came back. `None` without such rows, or where it is not known.
    pub back: Option<u64>,
    /// State of the cache at the end.
    pub memory: Memory,
    /// Events lost in the interval.
    pub lost: Lost,
    /// Latency of read calls and sizes of read-ahead windows, of what the total is of; `None` unless
    /// requested, and where it is not known.
    pub histograms: Option<Box<Histograms>>,
    /// Rows of the pivot, busiest first, as many as requested; what did nothing is left out.
    pub rows: Vec<Row>,
    /// Number of rows that there would be.
    pub groups: usize,
}

/// Turns counters into figures; figures that the plan cannot give stay unknown.
#[must_use]
pub fn figures(c: &Counters, plan: &Plan) -> Figures {
    known_figures(c, &known(plan))
}

/// Which figures a plan can give: looked up once for thousands of rows.
pub(crate) fn known(plan: &Plan) -> [bool; FIGURES] {
    let mut out = [false; FIGURES];
    for (figure, slot) in Figure::ALL.iter().zip(&mut out) {
        *slot = plan.knows(*figure);
    }
    out
}

/// Turns counters into those figures that are known.
pub(crate) fn known_figures(c: &Counters, known: &[bool; FIGURES]) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL.iter().filter(|f| known[**f as usize]) {
        out.set(
            *figure,
            Some(figure.counters().iter().fold(0, |sum, counter| sum.saturating_add(c.get(*counter)))),
        );
    }
    out
}

/// What was counted of the whole system: the line above rows of files, or above those of threads.
pub(crate) fn line(before: &Sample, now: &Sample, files: bool) -> Counters {
    match (&now.by_file, &before.by_file) {
        (Some(now), Some(before)) if files => now.since(before),
        _ => now.total.since(&before.total),
    }
}

/// The whole system, without rows.
pub(crate) fn whole(before: &Sample, now: &Sample, plan: &Plan) -> Interval {
    Interval {
        time: now.time,
        seconds: now.at.since(before.at).as_secs_f64(),
        engine: plan.engine.name(),
        total: figures(&now.total.since(&before.total), plan),
        classic: None,
        back: None,
        memory: now.memory,
        lost: now.lost.since(&before.lost),
        histograms: match (&now.latency, &before.latency) {
            (Some(now), Some(before)) => Some(Box::new(now.since(before))),
            _ => None,
        },
        rows: Vec::new(),
        groups: 0,
    }
}
