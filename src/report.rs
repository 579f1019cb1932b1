//! `cachestat -- COMMAND`: one command and its descendants, explained.
//!
//! The programs are attached before the command exists. It is forked from this process, which tells the kernel programs
//! which run it belongs to; whatever it forks belongs to the same run. Its own `execve` is counted as part of it.

mod accounts;
mod asleep;
pub mod assert;
mod beforehand;
mod blocks;
pub mod certificate;
pub mod child;
mod cold;
pub mod compare;
pub mod data;
mod ending;
pub mod ends;
mod export;
mod faults;
pub mod findings;
mod gather;
pub mod groups;
pub mod html;
pub mod json;
mod larger;
pub mod machine;
pub mod options;
mod origins;
mod output;
pub mod predicted;
mod price;
mod processes;
mod progress;
pub mod pushed;
pub mod residency;
pub mod saved;
#[cfg(test)]
mod schema_test;
mod series;
pub mod start;
pub mod stats;
pub mod text;
pub mod time;
pub mod trial;
pub mod units;
mod unseen;
mod usage;
pub mod verdict;
mod watch;

pub use cold::Cold;
pub use options::Options;

use std::sync::Arc;

use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use assert::Outcome;
use compare::Difference;
use data::Run;
use findings::Finding;
use groups::Against;
use groups::Group;
use verdict::Verdict;

/// What a report of an earlier day said.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Where it was kept.
    pub path: Foreign,
    /// Command, machine and time.
    pub about: String,
    /// Its last run.
    pub run: Run,
    /// All its runs, in groups.
    pub groups: Vec<Group>,
}

/// All that a report says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The command and its arguments; empty where a process was watched.
    pub command: Vec<Foreign>,
    /// The lines of shell that were compared, each with its letter; empty where there was one command.
    pub commands: Vec<(String, Foreign)>,
    /// The process that was watched.
    pub pid: Option<u32>,
    /// Kernel release.
    pub kernel: String,
    /// Name of the machine.
    pub host: Foreign,
    /// Whether sentences count pages, or what they hold.
    pub unit: Unit,
    /// What was done before and around the runs.
    pub about: Vec<String>,
    /// The runs of `--warmup`: known only so that what they did is not put down to anybody else.
    pub warmups: Vec<Run>,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// The runs that can be taken together.
    pub groups: Vec<Group>,
    /// How the groups compare.
    pub comparisons: Vec<Against>,
    /// What came of `--try`.
    pub trial: Option<trial::Outcome>,
    /// What the last run is compared with.
    pub compared: Option<Saved>,
    /// The answer, first.
    pub verdict: Verdict,
    /// What came of `--assert`.
    pub assertions: Vec<Outcome>,
    /// Where the differences in time went.
    pub differences: Vec<Difference>,
    /// What the figures prove.
    pub findings: Vec<Finding>,
    /// Which figures are not known here, and why.
    pub unknown: Vec<String>,
}

/// Words of a command as one; `None` of none. What is no UTF-8 is lost in reports that are saved, so it is here.
fn line<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<Arc<str>> {
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    (!words.is_empty()).then(|| words.join("\0").into())
}

impl Report {
    /// What it is about, in one line.
    #[must_use]
    pub fn title(&self) -> String {
        match self.pid {
            Some(pid) => {
                let name = self.runs.first().and_then(|r| r.processes.get(&pid));
                format!("process {pid} {}", foreign::or(name, ""))
            }
            None if !self.commands.is_empty() => self
                .commands
                .iter()
                .map(|(label, line)| format!("{label}: {line}"))
                .collect::<Vec<_>>()
                .join(", "),
            None => self.command.iter().map(Foreign::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    /// Draws the conclusions: differences and findings.
    pub fn conclude(&mut self) {
        let one = line(self.command.iter().map(Foreign::bytes));
        let several: Vec<_> =
            self.commands.iter().map(|(label, l)| (label, line(std::iter::once(l.bytes())))).collect();
        for run in self.warmups.iter_mut().chain(&mut self.runs) {
            run.unit = self.unit;
            let labelled = several.iter().find(|(label, _)| Some(*label) == run.label.as_ref());
            run.line = if several.is_empty() { one.clone() } else { labelled.and_then(|(_, l)| l.clone()) };
            if let (Some(certificate), Some(cold), Some(left)) =
                (&mut run.certificate, &run.cold, &run.cold_left)
            {
                certificate.emptied(cold, left);
            }
        }
        let step =
            |a: &Run, b: &Run| Difference::between(format!("run {} to run {}", a.number, b.number), a, b);
        // Two settings are told apart, cold as both runs may have been.
        self.groups = if self.trial.is_some() { Vec::new() } else { groups::divide(&self.runs) };
        self.comparisons = groups::against(&self.groups);
        let matter = groups::matter(&self.groups);
        let whole: Vec<&Run> = self.runs.iter().filter(|r| !r.left_out).collect();
        self.differences = match whole.as_slice() {
            _ if matter => groups::differences(&self.groups),
            [first, .., last] => {
                let mut all = vec![step(first, whole[1])];
                // The first run is the cold one, if any is.
                if whole.len() > 2 {
                    all.push(step(first, last));
                }
                all
            }
            _ => Vec::new(),
        };
        let saved = self.compared.as_ref().map(|s| groups::same(&s.groups, &self.groups)).unwrap_or_default();
        let alike = |(then, now): &&(&Group, &Group)| then.mean.ended_as(&now.mean);
        for (then, now) in saved.iter().filter(alike) {
            let title =
                if saved.len() > 1 { format!("{}, then to now", now.id()) } else { "then to now".into() };
            self.differences.push(Difference::between(title, &then.mean, &now.mean));
        }
        self.findings = findings::find(&self.warmups, &self.runs);
        // Single runs are told as such.
        let (pair, then) = (saved.last(), self.compared.as_ref());
        let last = pair.filter(|(then, now)| then.runs.len() + now.runs.len() > 2).filter(alike);
        let then = then.filter(|then| whole.last().is_none_or(|now| then.run.ended_as(now)));
        self.verdict = match (last, then) {
            (Some(pair), _) => verdict::of_groups(&self.groups, Some(*pair), &self.findings),
            (None, None) if matter => verdict::of_groups(&self.groups, None, &self.findings),
            (None, saved) => verdict::verdict(&self.runs, saved.map(|s| &s.run), &self.findings),
        };
        let saved = self.compared.as_ref().map(|s| &s.run);
        let left = verdict::not_compared(&self.runs, &self.groups, saved);
        self.verdict.text.push_str(&left);
    }
}
