//! From two samples to an interval: the only place where differences and rates are made.

use crate::classic;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::Sample;

/// One row of a pivot.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Thread-group id.
    pub pid: u32,
    /// User id.
    pub uid: u32,
    /// Command name.
    pub comm: String,
    /// What the process did in the interval.
    pub figures: Figures,
    /// The same by the classic engine, where it runs.
    pub classic: Option<classic::Figures>,
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
    /// Figures of the whole system (or of the process chosen with `-p`).
    pub total: Figures,
    /// The same by the classic engine, where it runs.
    pub classic: Option<classic::Figures>,
    /// State of the cache at the end.
    pub memory: Memory,
    /// Events lost in the interval.
    pub lost: Lost,
    /// Rows of the pivot, busiest first; processes that did nothing are left out.
    pub rows: Vec<Row>,
}

/// Turns counters into figures; figures that the plan cannot give stay unknown.
#[must_use]
pub fn figures(c: &Counters, plan: &Plan) -> Figures {
    let mut out = Figures::unknown();
    let hits = c.get(Counter::ReadHits);
    let ahead = c.get(Counter::ReadAheadHits);
    let misses = c.get(Counter::ReadMisses);
    for (figure, value) in [
        (Figure::Accesses, hits + ahead + misses),
        (Figure::Hits, hits),
        (Figure::ReadaheadHits, ahead),
        (Figure::Misses, misses),
        (Figure::ReadBytes, c.get(Counter::ReadBytes)),
        (Figure::ReadaheadPages, c.get(Counter::Prefetched)),
        (Figure::ReadaheadWasted, c.get(Counter::PrefetchWasted)),
        (Figure::Fills, c.get(Counter::MissFills) + c.get(Counter::Prefetched)),
        (Figure::Dirtied, c.get(Counter::Dirtied)),
        (Figure::BufferDirtied, c.get(Counter::BufferDirtied)),
        (Figure::Evicted, c.get(Counter::Evicted)),
        (Figure::Removed, c.get(Counter::Removed)),
    ] {
        if plan.knows(figure) {
            out.set(figure, Some(value));
        }
    }
    out
}

/// What happened from `before` to `now`.
#[must_use]
pub fn interval(before: &Sample, now: &Sample, plan: &Plan) -> Interval {
    let mut rows: Vec<(u64, Row)> = now
        .processes
        .values()
        .filter_map(|p| {
            let zero = Counters::default();
            let then = before.processes.get(&p.tgid).map_or(&zero, |b| &b.counters);
            let mut figures = figures(&p.counters.since(then), plan);
            // What the cache loses is no process's doing: the pages of one are reclaimed by another.
            for figure in [Figure::Evicted, Figure::Removed, Figure::ReadaheadWasted] {
                figures.set(figure, None);
            }
            // Bytes would drown the pages that rows are ranked by.
            let pages = |f: &Figure| if *f == Figure::ReadBytes { 0 } else { figures.get(*f).unwrap_or(0) };
            let busy: u64 = Figure::ALL.iter().map(pages).sum();
            let row = || Row { pid: p.tgid, uid: p.uid, comm: p.comm.clone(), figures, classic: None };
            (busy > 0).then(|| (busy, row()))
        })
        .collect();
    rows.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.pid.cmp(&y.pid)));
    let mut interval = Interval {
        time: now.time,
        seconds: now.at.duration_since(before.at).as_secs_f64(),
        engine: plan.engine.name(),
        total: figures(&now.total.since(&before.total), plan),
        classic: None,
        memory: now.memory,
        lost: now.lost.since(&before.lost),
        rows: rows.into_iter().map(|(_, r)| r).collect(),
    };
    classic::join(&mut interval, before, now, plan);
    interval
}
