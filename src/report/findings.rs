//! What the figures prove, in plain words: rules with an id, evidence and a remedy. A rule is silent when its figures
//! are unknown or do not prove it.

mod reading;
mod time;
mod warmth;

use serde::Serialize;
use serde_json::Value;

use super::data::Run;
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
    /// In words.
    pub text: String,
    /// What can be done about it.
    pub remedy: Option<String>,
    /// The figures that prove it.
    pub evidence: Value,
}

impl Finding {
    fn new(id: &'static str, text: String, evidence: Value) -> Option<Self> {
        Some(Self { id, runs: Vec::new(), text, remedy: None, evidence })
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A rule: a run, and those before it.
type Rule = fn(&Run, &[Run]) -> Option<Finding>;

/// Every rule, in the order in which findings are told.
const RULES: &[Rule] = &[
    warmth::earlier_run,
    warmth::other_process,
    warmth::before,
    warmth::only_metadata,
    reading::fed,
    reading::wasted,
    reading::cut_short,
    reading::limited,
    reading::direct,
    reading::fell_back,
    reading::refaults,
    reading::mapped,
    reading::faults_blind,
    time::throttled,
    time::in_open,
    time::metadata,
    time::lookups,
    time::elsewhere,
];

/// What is found in the runs. What was found in several is told once, with the figures of the first.
#[must_use]
pub fn of(runs: &[Run]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for rule in RULES {
        for (i, run) in runs.iter().enumerate() {
            let Some(finding) = rule(run, &runs[..i]) else { continue };
            match all.iter_mut().find(|f| f.id == finding.id) {
                Some(known) => known.runs.push(run.number),
                None => all.push(Finding { runs: vec![run.number], ..finding }),
            }
        }
    }
    all
}

/// `a / b`, of pages, bytes or seconds; 0 of nothing.
#[allow(clippy::cast_precision_loss)]
fn share(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// A share as people write it; never 0 % or 100 % of what is not.
fn percent(x: f64) -> String {
    match x * 100.0 {
        p if p > 0.0 && p < 1.0 => "less than 1 %".into(),
        p if p > 99.0 && p < 100.0 => "more than 99 %".into(),
        p => format!("{p:.0} %"),
    }
}

/// The accesses of reads, where all of them are known: hits, first uses of what was read ahead, misses.
fn reads(run: &Run) -> Option<(u64, u64, u64)> {
    Some((run.get(Figure::Hits)?, run.get(Figure::ReadaheadHits)?, run.get(Figure::Misses)?))
}

/// Nanoseconds against the wall time.
#[allow(clippy::cast_precision_loss)]
fn of_wall(ns: u64, run: &Run) -> f64 {
    if run.wall_s > 0.0 { ns as f64 / 1e9 / run.wall_s } else { 0.0 }
}

#[cfg(test)]
mod tests;
