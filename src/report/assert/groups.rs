//! Groups in assertions: `cold.wall`, `A.wall`, `B.warm.hit_ratio`: the mean of the runs that can be taken together.
//! With `min.` or `max.` before the figure, the least or the most of any of them.

use super::names::Name;
use crate::report::Report;
use crate::report::data::Run;
use crate::report::groups::Group;
use crate::report::groups::State;

/// A group, or several that are told apart by more than was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    label: Option<char>,
    state: Option<State>,
    take: Take,
}

/// What is taken of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    Mean,
    Least,
    Most,
}

impl Wanted {
    /// Reads the beginning of a name; the rest of it. `None` where it names no group.
    pub(super) fn parse(text: &str) -> Option<(Self, &str)> {
        let mut wanted = Self { label: None, state: None, take: Take::Mean };
        let mut rest = text;
        let head = |rest: &str| rest.split_once('.').map(|(h, _)| h.len());
        if let Some(1) = head(rest) {
            wanted.label = rest.chars().next().filter(char::is_ascii_uppercase);
            rest = if wanted.label.is_some() { &rest[2..] } else { rest };
        }
        for (name, state) in [("cold.", State::Cold), ("warm.", State::Warm)] {
            if let Some(after) = rest.strip_prefix(name) {
                (wanted.state, rest) = (Some(state), after);
            }
        }
        if wanted.label.is_none() && wanted.state.is_none() {
            return None;
        }
        for (name, take) in [("mean.", Take::Mean), ("min.", Take::Least), ("max.", Take::Most)] {
            if let Some(after) = rest.strip_prefix(name) {
                (wanted.take, rest) = (take, after);
                break;
            }
        }
        Some((wanted, rest))
    }

    /// As it was written.
    pub(super) fn text(&self) -> String {
        let mut out = self.label.map_or_else(String::new, |l| format!("{l}."));
        out.push_str(match self.state {
            Some(State::Cold) => "cold.",
            Some(State::Warm) => "warm.",
            _ => "",
        });
        out.push_str(match self.take {
            Take::Mean => "",
            Take::Least => "min.",
            Take::Most => "max.",
        });
        out
    }

    /// The one group that it means.
    fn group<'a>(&self, report: &'a Report) -> Result<&'a Group, String> {
        let label = self.label.map(String::from);
        let fits = |g: &&Group| {
            label.as_ref().is_none_or(|l| g.label == *l) && self.state.is_none_or(|s| g.state == s)
        };
        let found: Vec<&Group> = report.groups.iter().filter(fits).collect();
        let name = self.text();
        match found.as_slice() {
            [one] => Ok(one),
            [] => {
                let all: Vec<String> = report.groups.iter().map(Group::id).collect();
                Err(format!(
                    "there was no group '{}'; there was {}",
                    name.trim_end_matches('.'),
                    all.join(", ")
                ))
            }
            // Cold and warm runs have no mean, nor have those of several commands.
            several => {
                let all: Vec<String> = several.iter().map(|g| g.id()).collect();
                Err(format!("'{}' is more than one group: {}", name.trim_end_matches('.'), all.join(", ")))
            }
        }
    }

    /// The least and the most that the value can be, of the runs that count.
    pub(super) fn value(
        &self,
        name: Name,
        report: &Report,
        unknown: impl Fn(&Run) -> String,
    ) -> Result<(f64, f64), String> {
        let group = self.group(report)?;
        let runs = report.runs.iter().filter(|r| group.runs.contains(&r.number));
        let one = |run: &Run| name.value(run).ok_or_else(|| unknown(run));
        let values: Vec<(f64, f64)> = runs.map(one).collect::<Result<_, _>>()?;
        // The least of the least ends and the least of the most: what is taken of ranges lies between.
        let take = |end: fn(&(f64, f64)) -> f64| {
            let ends = values.iter().map(end);
            match self.take {
                Take::Mean => ends.sum::<f64>() / values.len() as f64,
                Take::Least => ends.fold(f64::INFINITY, f64::min),
                Take::Most => ends.fold(f64::NEG_INFINITY, f64::max),
            }
        };
        Ok((take(|v| v.0), take(|v| v.1)))
    }
}
