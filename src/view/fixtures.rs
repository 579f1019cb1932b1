//! Intervals made up for tests.
#![allow(clippy::unwrap_used)]

use std::time::Duration;
use std::time::Instant;

use crate::figures::Figure;
use crate::figures::Figures;
use crate::model::Interval;
use crate::model::Row;
use crate::plan::Brackets;
use crate::plan::Certainty;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Counters;
use crate::sample::Lost;
use crate::sample::Memory;
use crate::sample::RowSample;
use crate::sample::Sample;

/// 2026-11-21 09:00:01 UTC.
pub(crate) fn nine() -> jiff::Timestamp {
    "2026-11-21T09:00:01Z".parse().unwrap()
}

/// A plan that knows all figures but these.
pub(crate) fn plan(unknown: &[Figure]) -> Plan {
    let known = Figure::ALL.iter().filter(|f| !unknown.contains(f));
    Plan {
        engine: Engine::Exact,
        brackets: Brackets::Trampolines,
        fetch_atomics: true,
        hooks: Vec::new(),
        figures: known.map(|f| (*f, Certainty::Exact)).collect(),
    }
}

/// Figures with these values; all others are 0.
pub(crate) fn figures(values: &[(Figure, u64)]) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        out.set(*figure, Some(0));
    }
    for (figure, value) in values {
        out.set(*figure, Some(*value));
    }
    out
}

pub(crate) const MEMORY: Memory =
    Memory { cached_bytes: 2345 << 20, buffers_bytes: 117 << 20, dirty_bytes: 3 << 20 };

/// An interval of a second with these figures.
pub(crate) fn interval(total: Figures) -> Interval {
    Interval {
        time: nine(),
        seconds: 1.0,
        engine: "exact",
        total,
        memory: MEMORY,
        lost: Lost { by_reason: vec![("recursion", 0)] },
        histograms: None,
        rows: Vec::new(),
    }
}

/// One with every figure different, none of them 0.
pub(crate) fn busy() -> Interval {
    let mut total = Figures::unknown();
    for (i, figure) in Figure::ALL.iter().enumerate() {
        total.set(*figure, Some(1001 + i as u64));
    }
    for (figure, n) in [
        (Figure::Accesses, 16384),
        (Figure::Hits, 8192),
        (Figure::ReadaheadHits, 8128),
        (Figure::Misses, 64),
        (Figure::ReadBytes, 64 << 20),
        (Figure::StallNs, 12_345_678),
        (Figure::DirectReadBytes, 5 << 19),
        (Figure::DirectWriteBytes, 3 << 20),
    ] {
        total.set(figure, Some(n));
    }
    interval(total)
}

/// A busy one with three processes.
pub(crate) fn with_rows() -> Interval {
    let row = |pid, uid, comm: &str, hits, misses| Row {
        pid,
        uid,
        comm: comm.into(),
        figures: figures(&[
            (Figure::Accesses, hits + misses),
            (Figure::Hits, hits),
            (Figure::Misses, misses),
            (Figure::ReadBytes, (hits + misses) * 4096),
        ]),
    };
    let rows = vec![
        row(1234, 1000, "postgres", 8000, 4),
        row(77, 0, "a \u{1b}[31m,\"b\"\n", 192, 60),
        row(4_194_303, 4_294_967_294, "idler", 0, 0),
    ];
    Interval { rows, ..busy() }
}

/// A sample some time after `start`.
pub(crate) fn sample(start: Instant, after: Duration, counters: &[(Counter, u64)]) -> Sample {
    Sample {
        at: start + after,
        time: nine() + jiff::SignedDuration::try_from(after).unwrap(),
        total: self::counters(counters),
        rows: Vec::new(),
        latency: None,
        lost: Lost::default(),
        memory: MEMORY,
    }
}

/// Counters with these values.
pub(crate) fn counters(values: &[(Counter, u64)]) -> Counters {
    let mut out = Counters::default();
    for (counter, value) in values {
        out.0[*counter as usize] = *value;
    }
    out
}

/// What the only thread of a process did.
pub(crate) fn process(tgid: u32, comm: &str, values: &[(Counter, u64)]) -> RowSample {
    RowSample {
        tgid,
        tid: tgid,
        uid: 1000,
        cgroup: 1,
        born: 0,
        comm: comm.into(),
        process: comm.into(),
        counters: counters(values),
    }
}
