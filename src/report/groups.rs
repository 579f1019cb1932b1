//! Runs that can be taken together: of one command, all cold or all warm. Never more than that: the mean of a cold and a
//! warm run is the time of nothing.

mod mean;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::compare::Difference;
use super::data::Run;
use super::stats;
use super::stats::OUTLIER;
use super::stats::Ratio;
use super::stats::Spread;
use crate::figures::Figure;

/// What the caches were like before the runs of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Emptied.
    Cold,
    /// As an earlier run of this command had left them, after caches had been emptied before that.
    Warm,
    /// As they were.
    Any,
}

/// A run that lies far from the others of its group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlier {
    /// Its number.
    pub run: u32,
    /// Its wall time.
    pub wall_s: f64,
    /// Its modified Z-score; beyond [`OUTLIER`] either way.
    pub score: f64,
}

/// Runs that can be taken together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The letter of its command; empty where there is one command.
    pub label: String,
    /// What the caches were like.
    pub state: State,
    /// Its runs by number: those that count.
    pub runs: Vec<u32>,
    /// Runs that ended otherwise, or were interrupted, and do not count.
    pub left_out: Vec<u32>,
    /// Their wall times.
    pub wall: Spread,
    /// Those that lie far from the others.
    pub outliers: Vec<Outlier>,
    /// Their mean.
    pub mean: Run,
    walls: Vec<f64>,
    statuses: Vec<Option<i32>>,
}

impl Group {
    /// Its name, which does not change: `cold`, `warm`, `runs`, `A`, `A.cold`.
    #[must_use]
    pub fn id(&self) -> String {
        match (self.label.as_str(), self.state) {
            ("", State::Any) => "runs".into(),
            (label, State::Any) => label.into(),
            ("", State::Cold) => "cold".into(),
            ("", State::Warm) => "warm".into(),
            (label, State::Cold) => format!("{label}.cold"),
            (label, State::Warm) => format!("{label}.warm"),
        }
    }

    /// The wall time of each run that counts, in their order.
    #[must_use]
    pub fn walls(&self) -> &[f64] {
        &self.walls
    }

    /// How each run that counts ended.
    #[must_use]
    pub fn statuses(&self) -> &[Option<i32>] {
        &self.statuses
    }

    /// What share of the pages that a run used through the cache was there before it, at least; unknown of nothing, where it may
    /// have been a good deal more, and where most went past the cache.
    #[must_use]
    pub fn cached_before(&self) -> Option<f64> {
        let mean = &self.mean;
        let vague = mean.seen_before().is_some_and(|(least, most)| most - least > 0.1);
        let seen = mean.seen_cached_pages()?;
        (seen > 0 && !mean.origin.unlisted && !vague)
            .then(|| super::units::share(mean.warm_pages.saturating_sub(mean.since_pages), seen))
    }

    /// As it is in JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let mean = &self.mean;
        json!({
            "id": self.id(),
            "label": Some(self.label.as_str()).filter(|l| !l.is_empty()),
            "state": match self.state {
                State::Cold => Some("cold"),
                State::Warm => Some("warm"),
                State::Any => None,
            },
            "emptied": mean.cold,
            "runs": self.runs,
            "left_out": self.left_out,
            "wall_s": self.wall,
            "user_s": mean.usage.user_s,
            "system_s": mean.usage.system_s,
            "cached_before": self.cached_before(),
            "device_read_bytes": mean.usage.device_read_bytes,
            "misses": mean.get(Figure::Misses),
            "outliers": self.outliers,
        })
    }
}

/// Puts runs into groups: by command, cold ones first.
#[must_use]
pub fn divide(runs: &[Run]) -> Vec<Group> {
    let label = |r: &Run| r.label.clone().unwrap_or_default();
    let emptied = |wanted: &str| runs.iter().any(|r| label(r) == wanted && r.cold.is_some());
    let key = |r: &Run| {
        let label = label(r);
        let state = match r.cold {
            Some(_) => State::Cold,
            None if emptied(&label) => State::Warm,
            None => State::Any,
        };
        (label, state)
    };
    let mut keys: Vec<(String, State)> = runs.iter().map(key).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter_map(|(label, state)| {
            let members = runs.iter().filter(|r| key(r) == (label.clone(), state));
            let (out, members): (Vec<&Run>, Vec<&Run>) = members.partition(|r| r.left_out);
            group(label, state, &members, &out)
        })
        .collect()
}

fn group(label: String, state: State, members: &[&Run], out: &[&Run]) -> Option<Group> {
    let numbers = |runs: &[&Run]| runs.iter().map(|r| r.number).collect();
    let walls: Vec<f64> = members.iter().map(|r| r.wall_s).collect();
    let scores = stats::scores(&walls);
    let far = members.iter().zip(scores).filter(|(_, score)| score.abs() > OUTLIER);
    Some(Group {
        label,
        state,
        runs: numbers(members),
        left_out: numbers(out),
        wall: Spread::measure(&walls)?,
        outliers: far.map(|(r, score)| Outlier { run: r.number, wall_s: r.wall_s, score }).collect(),
        mean: mean::average(members)?,
        walls,
        statuses: members.iter().map(|r| r.exit_status).collect(),
    })
}

/// Two groups beside each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The one that is compared with.
    pub reference: String,
    /// The other.
    pub group: String,
    /// How many times as fast the other was.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// Which groups are compared: cold with warm of one command, and with the first command each other one in the same
/// state. Not those that ended otherwise: what failed was no faster.
#[must_use]
pub fn pairs(groups: &[Group]) -> Vec<(&Group, &Group)> {
    let find = |label: &str, state| groups.iter().find(|g| g.label == label && g.state == state);
    let Some(first) = groups.first().map(|g| g.label.as_str()) else { return Vec::new() };
    let mut pairs = Vec::new();
    for other in groups.iter().filter(|g| g.label != first) {
        pairs.extend(find(first, other.state).map(|reference| (reference, other)));
    }
    for warm in groups.iter().filter(|g| g.state == State::Warm) {
        pairs.extend(find(&warm.label, State::Cold).map(|cold| (cold, warm)));
    }
    pairs.retain(|(a, b)| a.mean.ended_as(&b.mean));
    pairs
}

/// How the pairs compare.
#[must_use]
pub fn against(groups: &[Group]) -> Vec<Against> {
    let one = |(a, b): &(&Group, &Group)| {
        let ratio = Ratio::between(&a.wall, &b.wall)?;
        Some(Against { reference: a.id(), group: b.id(), ratio })
    };
    pairs(groups).iter().filter_map(one).collect()
}

/// The groups of a saved report and of this one that are alike, or else the last of each.
#[must_use]
pub fn same<'a>(then: &'a [Group], now: &'a [Group]) -> Vec<(&'a Group, &'a Group)> {
    let alike = |now: &'a Group| then.iter().find(|t| t.id() == now.id()).map(|then| (then, now));
    let all: Vec<_> = now.iter().filter_map(alike).collect();
    if all.is_empty() { then.last().zip(now.last()).into_iter().collect() } else { all }
}

/// Whether the means of groups are told, and not single runs: where there are several commands, or a group that was made
/// cold or warm on purpose has several runs.
#[must_use]
pub fn matter(groups: &[Group]) -> bool {
    groups.iter().any(|g| !g.label.is_empty() || (g.state != State::Any && g.runs.len() > 1))
}

/// Where the differences between the means went.
#[must_use]
pub fn differences(groups: &[Group]) -> Vec<Difference> {
    let one = |(a, b): &(&Group, &Group)| {
        Difference::between(format!("{} to {}, means", a.id(), b.id()), &a.mean, &b.mean)
    };
    pairs(groups).iter().map(one).collect()
}

#[cfg(test)]
mod tests;
