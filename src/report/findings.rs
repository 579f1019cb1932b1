//! What the figures prove, in plain words: rules with an id, evidence and a remedy. A rule is silent when its figures
//! are unknown or do not prove it.

mod between;
mod came;
mod common;
mod faults;
mod finding;
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

pub use finding::Finding;
pub(in crate::report) use waiting::without_a_processor;

use super::data::Run;

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
    faults::from_swap,
    faults::no_data,
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

#[cfg(test)]
mod came_tests;
#[cfg(test)]
mod cause_tests;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod faults_tests;
#[cfg(test)]
mod processor_tests;
#[cfg(test)]
mod pushed_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ways_tests;
