//! From two samples to an interval: the only place where differences and rates are made.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::Unit;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::RowSample;
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
    let (write_hits, write_misses) = (c.get(Counter::WriteHits), c.get(Counter::WriteMisses));
    let (meta_hits, meta_ahead) = (c.get(Counter::MetaHits), c.get(Counter::MetaAheadHits));
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
        (Figure::StallNs, c.get(Counter::StallNs)),
        (Figure::Inflight, c.get(Counter::Inflight)),
        (Figure::FaultMisses, c.get(Counter::FaultMisses)),
        (Figure::FaultHits, c.get(Counter::FaultHits)),
        (Figure::FaultAround, c.get(Counter::FaultAround)),
        (Figure::WriteAccesses, write_hits + write_misses),
        (Figure::WriteHits, write_hits),
        (Figure::WriteMisses, write_misses),
        (Figure::DirectReadBytes, c.get(Counter::DirectReadBytes)),
        (Figure::DirectWriteBytes, c.get(Counter::DirectWriteBytes)),
        (Figure::DirectFellBack, c.get(Counter::DirectFellBack)),
        (Figure::MetaAccesses, meta_hits + meta_ahead + c.get(Counter::MetaMisses)),
        (Figure::MetaHits, meta_hits),
        (Figure::MetaReadaheadHits, meta_ahead),
        (Figure::MetaMisses, c.get(Counter::MetaMisses)),
        (Figure::Refaulted, c.get(Counter::Refaulted)),
    ] {
        if plan.knows(figure) {
            out.set(figure, Some(value));
        }
    }
    out
}

/// What happened from `before` to `now`, which must be two samples of one source in a row.
#[must_use]
pub fn interval(before: &Sample, now: &Sample, plan: &Plan) -> Interval {
    let mut processes: HashMap<u32, (u64, RowSample)> = HashMap::new();
    for row in &now.rows {
        match processes.entry(row.tgid) {
            Entry::Vacant(e) => {
                e.insert((row.born, row.clone()));
            }
            Entry::Occupied(mut e) => {
                let (born, sum) = e.get_mut();
                sum.counters.add(&row.counters);
                // The process is called what it was called last.
                if row.born > *born {
                    *born = row.born;
                    (sum.process, sum.uid) = (row.process, row.uid);
                }
            }
        }
    }
    let mut rows: Vec<(u64, Row)> = processes
        .into_values()
        .filter_map(|(_, p)| {
            let mut figures = figures(&p.counters, plan);
            // What the cache loses is no process's doing: the pages of one are reclaimed by another.
            for figure in [Figure::Evicted, Figure::Removed, Figure::ReadaheadWasted] {
                figures.set(figure, None);
            }
            let idle = Figure::ALL.iter().all(|f| figures.get(*f).unwrap_or(0) == 0);
            // Bytes and times would drown the pages that rows are ranked by.
            let pages = |f: &Figure| match f.unit() {
                Unit::Pages | Unit::Events => figures.get(*f).unwrap_or(0),
                Unit::Bytes | Unit::Nanoseconds => 0,
            };
            let busy: u64 = Figure::ALL.iter().map(pages).sum();
            let row = Row { pid: p.tgid, uid: p.uid, comm: p.process.name().into_owned(), figures };
            (!idle).then_some((busy, row))
        })
        .collect();
    rows.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.pid.cmp(&y.pid)));
    Interval {
        time: now.time,
        seconds: now.at.duration_since(before.at).as_secs_f64(),
        engine: plan.engine.name(),
        total: figures(&now.total.since(&before.total), plan),
        memory: now.memory,
        lost: now.lost.since(&before.lost),
        rows: rows.into_iter().map(|(_, r)| r).collect(),
    }
}
