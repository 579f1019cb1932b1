//! What the figures prove, in plain words: rules with an id, evidence and a remedy. A rule is silent when its figures
//! are unknown or do not prove it.

mod between;
mod hung;
mod memory;
mod others;
mod processor;
mod pushed;
mod reading;
mod room;
mod time;
mod waiting;
mod warmth;
mod writing;

pub(in crate::report) use waiting::without_a_processor;

use serde::Serialize;
use serde_json::Value;

use super::data::Run;
use super::time::Parts;
use super::units;
use super::units::share;
use crate::figures::Figure;

/// Pages below which nothing is said about reads: 1 MiB.
const MANY: u64 = 256;

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A short name that does not change.
    pub id: &'static str,
    /// The runs that it is about.
    pub runs: Vec<u32>,
    /// Whether it says the same of all of them. Otherwise the figures are those of the first.
    #[serde(skip)]
    pub same: bool,
    /// In words.
    pub text: String,
    /// What can be done about it.
    pub remedy: Option<String>,
    /// The figures that prove it.
    pub evidence: Value,
}

impl Finding {
    fn new(id: &'static str, text: String, evidence: Value) -> Option<Self> {
        // A text may begin with a share or a time in words.
        let mut letters = text.chars();
        let text = letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect());
        Some(Self { id, runs: Vec::new(), same: true, text, remedy: None, evidence })
    }

    /// The runs, and of which of them the figures are, where these differ: `runs 2 to 9, figures of run 2`.
    #[must_use]
    pub fn which(&self) -> String {
        match self.runs.first() {
            Some(first) if !self.same => format!("{}, figures of run {first}", self.named()),
            _ => self.named(),
        }
    }

    /// `run 2`, `runs 2 and 3`, `runs 2, 3 and 5`, `runs 2 to 9`.
    fn named(&self) -> String {
        let numbers: Vec<String> = self.runs.iter().map(u32::to_string).collect();
        let in_a_row = self.runs.windows(2).all(|w| matches!(w, [a, b] if *b == a + 1));
        match numbers.as_slice() {
            [] => String::new(),
            [one] => format!("run {one}"),
            [first, .., last] if in_a_row && numbers.len() > 2 => format!("runs {first} to {last}"),
            [before @ .., last] => format!("runs {} and {last}", before.join(", ")),
        }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A rule: a run, and those before it, warm-ups first.
type Rule = fn(&Run, &[&Run]) -> Option<Finding>;

/// Every rule, in the order in which findings are told.
const RULES: &[Rule] = &[
    warmth::earlier_run,
    warmth::other_process,
    warmth::before,
    warmth::only_metadata,
    warmth::metadata_before,
    reading::fed,
    reading::wasted,
    reading::cut_short,
    reading::limited,
    reading::direct,
    reading::uncached,
    reading::fell_back,
    writing::read_to_write,
    writing::copied,
    pushed::by_another,
    pushed::scan,
    memory::helps,
    memory::helps_not,
    room::read_ahead,
    room::working_set,
    reading::mapped,
    reading::faults_blind,
    time::throttled,
    time::in_open,
    time::metadata,
    time::waited_for_metadata,
    time::lookups,
    time::elsewhere,
    waiting::data,
    waiting::writes,
    waiting::sync,
    processor::contention,
    processor::bound,
    processor::computed,
    others::asleep,
    hung::hung,
    hung::still_waiting,
    others::peers,
    others::timers,
    others::locks,
    others::completions,
    others::several,
    between::lost,
    between::dropped,
    between::left_nothing,
    between::limit,
    between::price,
    others::unexplained,
];

/// What is found in the runs, after runs to warm up. What was found in several is told once, with the figures of the
/// first.
#[must_use]
pub fn find(warmups: &[Run], runs: &[Run]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let lived: Vec<&Run> = warmups.iter().chain(runs).collect();
    for rule in RULES {
        for (i, run) in runs.iter().enumerate() {
            let Some(finding) = rule(run, &lived[..warmups.len() + i]) else { continue };
            match all.iter_mut().find(|f| f.id == finding.id) {
                Some(known) => {
                    known.same &= known.text == finding.text;
                    known.runs.push(run.number);
                }
                None => all.push(Finding { runs: vec![run.number], ..finding }),
            }
        }
    }
    all
}

/// A share as people write it; never 0 % or 100 % of what is not.
fn percent(x: f64) -> String {
    units::percent(x, 0).replace('<', "less than ").replace('>', "more than ")
}

/// The accesses of reads, where all of them are known: hits, first uses of what was read ahead, misses.
fn reads(run: &Run) -> Option<(u64, u64, u64)> {
    Some((run.get(Figure::Hits)?, run.get(Figure::ReadAheadHits)?, run.get(Figure::Misses)?))
}

/// Pages that a run had other than by reads that found or brought them in.
struct Ways {
    /// Brought in for mappings, or read ahead and not read: at most so many, at least the faults.
    mapped: u64,
    /// Past the cache.
    direct: u64,
}

/// The other ways in, where they are known: who maps its files, or reads past the cache, still reads a little when it
/// starts, and that little says nothing of all.
fn ways(run: &Run) -> Option<Ways> {
    let (_, ahead, _) = reads(run)?;
    let fetched = run.get(Figure::ReadAheadPages)?;
    Some(Ways {
        mapped: run.get(Figure::FaultMisses)? + fetched.saturating_sub(ahead),
        direct: run.get(Figure::DirectReadBytes).unwrap_or(0) / units::page(),
    })
}

/// What share of its time a run spent so: of the wall time or, where threads worked in parallel, of the time of them all.
/// Which of them the others, or the user, waited for is not known.
fn of_time(seconds: f64, run: &Run) -> f64 {
    let parts = Parts::divide(run);
    let all = parts.explained().filter(|_| parts.overlap()).unwrap_or(run.wall_s);
    if all > 0.0 { seconds / all } else { 0.0 }
}

/// The same of nanoseconds.
fn of_ns(ns: u64, run: &Run) -> f64 {
    of_time(ns as f64 / 1e9, run)
}

/// A share of [`of_time`] in words.
fn part_of_time(share: f64, run: &Run) -> String {
    let whose = if Parts::divide(run).overlap() { " of its threads, which worked in parallel" } else { "" };
    // Pauses are what the kernel asked for: they may be longer than what was slept.
    if share > 1.0 {
        "all of the time".to_owned() + whose
    } else {
        format!("{} of the time{whose}", percent(share))
    }
}

#[cfg(test)]
mod cause_tests;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod pushed_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ways_tests;
