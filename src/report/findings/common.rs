//! What several rules ask of a run, and how they say it.

use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::faults::mapped;
pub(super) use crate::report::faults::reads;
use crate::report::time::Parts;
use crate::report::units;

/// Pages below which nothing is said about reads: 1 MiB.
pub(super) const MANY: u64 = 256;

/// What takes less of the time is not told of.
pub(super) const LEAST: f64 = 0.2;

/// Nor what nobody notices, seconds.
pub(super) const SHORT_S: f64 = 0.01;

/// A share as people write it; never 0 % or 100 % of what is not.
pub(super) fn percent(x: f64) -> String {
    units::percent(x, 0).replace('<', "less than ").replace('>', "more than ")
}

/// Pages that a run had other than by reads that found or brought them in.
pub(super) struct Ways {
    /// Brought in for mappings, or read ahead and not read: at most so many, at least the faults.
    pub(super) mapped: u64,
    /// Past the cache.
    pub(super) direct: u64,
}

/// The other ways in, where they are known: who maps its files, or reads past the cache, still reads a little when it
/// starts, and that little says nothing of all.
pub(super) fn ways(run: &Run) -> Option<Ways> {
    Some(Ways { mapped: mapped(run)?, direct: run.get(Figure::DirectReadBytes).unwrap_or(0) / units::page() })
}

/// What share of its time a run spent so: of the wall time or, where threads worked in parallel, of the time of them all.
/// Which of them the others, or the user, waited for is not known.
pub(super) fn of_time(seconds: f64, run: &Run) -> f64 {
    let parts = Parts::divide(run);
    let all = parts.explained().filter(|_| parts.overlap()).unwrap_or(run.wall_s);
    if all > 0.0 { seconds / all } else { 0.0 }
}

/// The same of nanoseconds.
pub(super) fn of_ns(ns: u64, run: &Run) -> f64 {
    of_time(ns as f64 / 1e9, run)
}

/// A share of [`of_time`] in words.
pub(super) fn part_of_time(share: f64, run: &Run) -> String {
    let whose = if Parts::divide(run).overlap() { " of its threads, which worked in parallel" } else { "" };
    // Pauses are what the kernel asked for: they may be longer than what was slept.
    if share > 1.0 {
        "all of the time".to_owned() + whose
    } else {
        format!("{} of the time{whose}", percent(share))
    }
}

/// Of waits that are worth a word, nanoseconds: how long they were, in seconds, and that with their share of the time in words.
pub(super) fn worth(ns: u64, run: &Run) -> Option<(f64, String)> {
    let s = ns as f64 / 1e9;
    let share = of_ns(ns, run);
    (s >= SHORT_S && share >= LEAST)
        .then(|| (s, format!("{} ({})", units::seconds(ns), part_of_time(share, run))))
}
