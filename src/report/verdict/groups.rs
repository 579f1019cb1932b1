//! The verdict over means: cold against warm runs, one command against another, runs then against runs now.

use super::Cause;
use super::Kind;
use super::Verdict;
use super::Words;
use super::alone;
use super::between;
use super::first_sentence;
use super::units;
use super::worth_a_word;
use crate::report::data::Run;
use crate::report::findings::Finding;
use crate::report::groups::Group;
use crate::report::groups::State;
use crate::report::stats::Ratio;

/// Kinds of causes that a cache has to do with: what it lacks has to be waited for, and brought in.
const OF_THE_CACHE: [Kind; 3] = [Kind::Data, Kind::Metadata, Kind::Lookups];

/// The verdict where means matter: against what was saved, if that has several runs; else of the groups.
#[must_use]
pub fn of_groups(groups: &[Group], saved: Option<(&Group, &Group)>, findings: &[Finding]) -> Verdict {
    if let Some((then, now)) = saved {
        return means(then, now, |g, when| format!("{} {when}", runs_of(g)), findings);
    }
    let find = |label: &str, state| groups.iter().find(|g| g.label == label && g.state == state);
    let Some(first) = groups.first() else { return Verdict::default() };
    let mut states = vec![State::Cold, State::Warm, State::Any];
    states.retain(|state| groups.iter().any(|g| g.state == *state));
    let mut verdict: Option<Verdict> = None;
    for state in states {
        let Some(reference) = find(&first.label, state) else { continue };
        let others = groups.iter().filter(|g| g.state == state && g.label != first.label);
        let others = others.filter(|g| g.mean.ended_as(&reference.mean));
        // Against the first the fastest of the others; the table has all.
        let Some(best) = others.min_by(|a, b| a.wall.mean.total_cmp(&b.wall.mean)) else { continue };
        let one = means(reference, best, |g, _| of_command(g), findings);
        match &mut verdict {
            None => verdict = Some(one),
            Some(told) => told.text = format!("{} {}", told.text, one.text),
        }
    }
    match (verdict, find(&first.label, State::Cold), find(&first.label, State::Warm)) {
        (Some(verdict), ..) => verdict,
        (None, Some(cold), Some(warm)) => means(cold, warm, |g, _| in_state(g), findings),
        _ => one(first),
    }
}

/// `a cold run`.
fn in_state(group: &Group) -> String {
    match group.state {
        State::Cold => "a cold run".into(),
        State::Warm => "a warm run".into(),
        State::Any => "a run".into(),
    }
}

/// `B`, `B cold`.
fn of_command(group: &Group) -> String {
    match group.state {
        State::Cold => format!("{}, cold,", group.label),
        State::Warm => format!("{}, warm,", group.label),
        State::Any => group.label.clone(),
    }
}

/// `the run`, `the mean of 5 cold runs`.
fn runs_of(group: &Group) -> String {
    let state = match group.state {
        State::Cold => "cold ",
        State::Warm => "warm ",
        State::Any => "",
    };
    match group.runs.len() {
        1 => format!("the {state}run"),
        n => format!("the mean of {n} {state}runs"),
    }
}

fn means(then: &Group, now: &Group, name: impl Fn(&Group, &str) -> String, findings: &[Finding]) -> Verdict {
    let ratio = Ratio::between(&then.wall, &now.wall);
    let words =
        Words { before: name(then, "then").trim_end_matches(',').into(), after: name(now, "now"), ratio };
    let mut mean = now.mean.clone();
    // Whatever run of the other group brought pages in.
    let by: u64 = now.mean.origin.runs.iter().filter(|(n, _)| then.runs.contains(n)).map(|(_, p)| p).sum();
    mean.origin.runs = vec![(then.mean.number, by)];
    let mut verdict = between(&then.mean, &mean, &words, findings);
    // Of a single run it is not known: at least as wide as that of the others.
    let spread = match (then.wall.deviation, now.wall.deviation) {
        (Some(a), Some(b)) => Some(a.hypot(b)),
        (one, other) => one.or(other),
    };
    if let Some(spread) = spread.filter(|s| *s > (then.wall.mean - now.wall.mean).abs()) {
        // What may be chance is not explained.
        verdict.text = first_sentence(&then.mean, &mean, &words, worth_a_word(&then.mean, &mean));
        verdict.text.push_str(&format!(
            " The difference is smaller than the spread of single runs (± {}): it may be chance.",
            units::wall(spread)
        ));
    } else if !then.mean.is_same_command(&mean) && worth_a_word(&then.mean, &mean) && then.label != now.label
    {
        verdict.text.push_str(&shared_by_cache(&verdict.causes));
    }
    verdict
}

/// How much of a difference between commands the cache had to do with.
fn shared_by_cache(causes: &[Cause]) -> String {
    let of = |kinds: &[Kind]| -> Option<f64> {
        let shares = causes.iter().filter(|c| kinds.iter().any(|k| k.id() == c.id)).map(|c| c.share);
        shares.flatten().reduce(|a, b| a + b)
    };
    match (of(&OF_THE_CACHE), of(&[Kind::Cpu])) {
        (Some(cache), Some(own)) => format!(
            " In all, {} of the difference is what was not cached (waiting for it, and names), {} other processor time \
             of the commands.",
            units::percent(cache, 0),
            units::percent(own, 0)
        ),
        _ => String::new(),
    }
}

/// Of one group: what a run of it took, and where that went.
fn one(group: &Group) -> Verdict {
    let mut verdict = alone(&Run { number: 0, ..group.mean.clone() });
    let spread = group.wall.deviation.map_or_else(String::new, |d| format!(" ± {}", units::wall(d)));
    let mut name = if group.label.is_empty() { in_state(group) } else { of_command(group) };
    name.get_mut(..1).map(str::make_ascii_uppercase);
    let took = format!("It took {}", units::wall(group.mean.wall_s));
    let of = match group.runs.len() {
        1 => String::new(),
        n => format!("{spread} (mean of {n} runs)"),
    };
    let mean = format!("{name} took {}{of}", units::wall(group.mean.wall_s));
    verdict.text = verdict.text.replacen(&took, &mean, 1);
    verdict
}
