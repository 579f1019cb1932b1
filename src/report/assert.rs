//! `--assert EXPR`: what must hold of the runs, for tests and CI.
//!
//! An expression compares two sides: `hit_ratio > 95%`, `misses == 0`, `device_read_bytes < 10MiB`,
//! `run2.wall < 0.5 * run1.wall`, `warm.wall < 0.5 * cold.wall`. A name without a run must hold for every run; what is
//! not known fails, since it has not been shown to hold.

mod bounds;
mod groups;
mod names;
mod parse;

use std::fmt::Write as _;

use serde::Serialize;

use super::Report;
use super::data::Run;
use crate::figures::Figure;
use crate::model::Interval;
use crate::text::foreign::Foreign;
use groups::Wanted;
use names::About;
use names::Name;

/// One that was given.
#[derive(Debug, Clone)]
pub struct Assertion {
    text: String,
    left: Side,
    comparison: Comparison,
    right: Side,
}

impl PartialEq for Assertion {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Assertion {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    NotEqual,
    AtLeast,
    More,
}

/// A number, so much a second, a name, or a multiple of a name.
#[derive(Debug, Clone, PartialEq)]
enum Side {
    Number(f64),
    Rate(f64),
    Value { times: f64, of: Whose, name: Name },
}

/// Which runs a name is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// Each run, in turn.
    Each,
    /// One, by its number.
    Run(u32),
    /// The last one.
    Last,
    /// The mean of all.
    Mean,
    /// Those that can be taken together.
    Group(Wanted),
}

/// The least and the most that a side can be.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: f64,
    most: f64,
}

/// What can come of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcomes {
    /// It was shown to hold.
    Passed,
    /// It was shown not to hold.
    Failed,
    /// Neither, which fails as well: a figure is not known, or not well enough.
    Unknown,
}

impl Outcomes {
    /// Its name, as it is in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// What came of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The expression, as it was given.
    pub expression: String,
    /// Whether it was shown to hold.
    pub holds: bool,
    /// The same, with what is not known told apart from what does not hold.
    pub result: Outcomes,
    /// The run for which it did not, where that is one of several.
    pub run: Option<u32>,
    /// What the sides were, or why that is not known.
    pub found: String,
}

impl Assertion {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, in words for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::assertion(text, About::Runs)
    }

    /// Reads an expression about what happens in an interval: without runs and what only a command has, with what the cache
    /// as a whole loses, and with rates (`misses > 10000/s`).
    ///
    /// # Errors
    /// What is wrong with it, in words for its author.
    pub fn parse_interval(text: &str) -> Result<Self, String> {
        parse::assertion(text, About::Intervals)
    }

    /// A run that it names by its number and that is not among so many, which are counted from 1.
    #[must_use]
    pub fn run_beyond(&self, runs: u64) -> Option<u32> {
        let named = [&self.left, &self.right].into_iter().filter_map(|side| match side {
            Side::Value { of: Whose::Run(n), .. } => Some(*n),
            _ => None,
        });
        named.filter(|n| *n == 0 || u64::from(*n) > runs).max()
    }

    /// The expression, as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The figures that it cannot do without.
    #[must_use]
    pub fn needs(&self) -> Vec<Figure> {
        [&self.left, &self.right].into_iter().flat_map(Side::needs).collect()
    }

    /// What comes of it in an interval.
    #[must_use]
    pub fn check_interval(&self, interval: &Interval) -> Outcome {
        let lost = interval.lost.by_reason.iter().map(|(why, n)| (why.to_string(), *n)).collect();
        let run = Run {
            number: 1,
            wall_s: interval.seconds,
            figures: interval.total.clone(),
            lost,
            ..Run::default()
        };
        self.check(&Report { runs: vec![run], ..Report::default() })
    }

    /// Whether it holds.
    #[must_use]
    pub fn check(&self, report: &Report) -> Outcome {
        let outcome = |result, run: Option<u32>, found| Outcome {
            expression: self.text.clone(),
            holds: result == Outcomes::Passed,
            result,
            run: run.filter(|_| report.runs.len() > 1),
            found,
        };
        let each = [&self.left, &self.right].iter().any(|s| matches!(s, Side::Value { of: Whose::Each, .. }));
        // Where no side is about each run, one look is enough.
        let runs = if each { report.runs.as_slice() } else { report.runs.get(..1).unwrap_or_default() };
        if runs.is_empty() {
            return outcome(Outcomes::Unknown, None, "there was no run".into());
        }
        let mut found = String::new();
        for run in runs {
            let number = each.then_some(run.number);
            let (left, right) = match (self.left.value(run, report), self.right.value(run, report)) {
                (Ok(left), Ok(right)) => (left, right),
                (Err(why), _) | (_, Err(why)) => return outcome(Outcomes::Unknown, number, why),
            };
            found = self.found(left, right, run.wall_s);
            if !self.comparison.holds(left, right) {
                let known = self.comparison.opposite().holds(left, right);
                return outcome(if known { Outcomes::Failed } else { Outcomes::Unknown }, number, found);
            }
        }
        outcome(Outcomes::Passed, None, found)
    }

    /// What the sides were, with as many digits as it takes to see how they compare: 98.96 % reads as 99.0 %, which is not
    /// below 99 %.
    fn found(&self, left: Range, right: Range, seconds: f64) -> String {
        /// More digits than these tell nobody anything.
        const MOST: usize = 4;
        // Of what is compared with a rate, the rate.
        let rate = [&self.left, &self.right].iter().any(|s| matches!(s, Side::Rate(_)));
        let per = rate.then_some(seconds);
        let order = |l: Range, r: Range| (l.least.partial_cmp(&r.most), l.most.partial_cmp(&r.least));
        let tells = |more: &usize| {
            let (l, r) = (self.left.as_shown(left, per, *more), self.right.as_shown(right, per, *more));
            order(l, r) == order(left, right)
        };
        let more = (0..MOST).find(tells).unwrap_or(MOST);
        let parts =
            [(&self.left, left), (&self.right, right)].map(|(side, value)| side.show(value, per, more));
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Side {
    fn value(&self, run: &Run, report: &Report) -> Result<Range, String> {
        let (times, of, name) = match self {
            Self::Number(n) => return Ok(Range { least: *n, most: *n }),
            Self::Rate(n) => return Ok(Range { least: n * run.wall_s, most: n * run.wall_s }),
            Self::Value { times, of, name } => (times, of, name),
        };
        let unknown =
            |run: &Run| format!("{} is not known of run {}{}", self.name(), run.number, name.why(report));
        let one = |run: &Run| name.value(run).ok_or_else(|| unknown(run));
        let (least, most) = match of {
            Whose::Each => one(run)?,
            Whose::Last => one(report.runs.last().unwrap_or(run))?,
            Whose::Run(number) => {
                let run = report.runs.iter().find(|r| r.number == *number);
                one(run.ok_or_else(|| format!("there was no run {number}"))?)?
            }
            Whose::Group(wanted) => wanted.value(*name, report, unknown)?,
            Whose::Mean => {
                let all: Vec<(f64, f64)> = report.runs.iter().map(one).collect::<Result<_, _>>()?;
                let n = all.len() as f64;
                let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / n;
                (mean(|v| v.0), mean(|v| v.1))
            }
        };
        // A factor is more than 0.
        Ok(Range { least: least * times, most: most * times })
    }

    /// A value of it in words; of a rate, over so many seconds. Nothing of a number, which was given.
    fn show(&self, value: Range, per: Option<f64>, more: usize) -> Option<String> {
        let Self::Value { name, times, .. } = self else { return None };
        // Of a multiple, what it is a multiple of is the figure.
        let shown = |x: f64| name.show(x / (times * per.unwrap_or(1.0)), per.is_some(), more);
        let unit = if per.is_some() { "/s" } else { "" };
        let (least, most) = (shown(value.least), shown(value.most));
        Some(match value.most {
            // Not all of it is seen: the report, and `--explain`, say what is not.
            f64::INFINITY => format!("{} is at least {least}{unit}", self.name()),
            _ if least == most => format!("{} is {least}{unit}", self.name()),
            _ => format!("{} is between {least}{unit} and {most}{unit}", self.name()),
        })
    }

    /// What these words say of it.
    fn as_shown(&self, value: Range, per: Option<f64>, more: usize) -> Range {
        let Self::Value { name, times, .. } = self else { return value };
        let scale = times * per.unwrap_or(1.0);
        let shown = |x: f64| name.as_shown(x / scale, per.is_some(), more) * scale;
        Range { least: shown(value.least), most: shown(value.most) }
    }

    fn needs(&self) -> Vec<Figure> {
        match self {
            Self::Value { name, .. } => name.needs(),
            Self::Number(_) | Self::Rate(_) => Vec::new(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Rate(n) => format!("{n}/s"),
            Self::Value { of, name, .. } => match of {
                Whose::Each => name.text(),
                Whose::Run(n) => format!("run{n}.{}", name.text()),
                Whose::Last => format!("last.{}", name.text()),
                Whose::Mean => format!("mean.{}", name.text()),
                Whose::Group(wanted) => format!("{}{}", wanted.text(), name.text()),
            },
        }
    }
}

impl Comparison {
    /// What holds where this does not, of numbers that are known.
    const fn opposite(self) -> Self {
        match self {
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::AtLeast => Self::Less,
            Self::More => Self::AtMost,
        }
    }

    /// Whether it holds whatever the sides are, within what is known of them.
    fn holds(self, left: Range, right: Range) -> bool {
        match self {
            Self::Less => left.most < right.least,
            Self::AtMost => left.most <= right.least,
            Self::Equal => left.least == right.most && left.most == right.least,
            Self::NotEqual => left.most < right.least || left.least > right.most,
            Self::AtLeast => left.least >= right.most,
            Self::More => left.least > right.most,
        }
    }
}

/// A line for each that failed; nothing where all hold.
#[must_use]
pub fn lines(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for o in outcomes.iter().filter(|o| !o.holds) {
        let _ = writeln!(out, "cachestat: assertion failed: {}", o.line());
    }
    out
}

/// The same as annotations, in the form that GitHub Actions reads from standard output.
#[must_use]
pub fn annotations(outcomes: &[Outcome]) -> String {
    // The form's own escapes.
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let failed = outcomes.iter().filter(|o| !o.holds);
    failed.map(|o| format!("::error title=cachestat --assert::{}\n", escaped(&o.line()))).collect()
}

/// The same as JUnit XML, a test case for each.
#[must_use]
pub fn junit(outcomes: &[Outcome], seconds: f64) -> String {
    let failed = outcomes.iter().filter(|o| !o.holds).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cachestat\" tests=\"{}\" failures=\"{failed}\" \
         errors=\"0\" time=\"{seconds:.3}\">\n",
        outcomes.len()
    );
    for o in outcomes {
        // White space in an expression may be what XML has no character for.
        let name = escaped(&Foreign::from(o.expression.as_str()).to_string());
        let _ = match o.holds {
            true => writeln!(out, "  <testcase classname=\"cachestat.assert\" name=\"{name}\"/>"),
            false => writeln!(
                out,
                "  <testcase classname=\"cachestat.assert\" name=\"{name}\">\n    <failure type=\"{}\" message=\"{}\"/>\n  </testcase>",
                o.result.name(),
                escaped(&o.line())
            ),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

impl Outcome {
    fn line(&self) -> String {
        let run = self.run.map_or_else(String::new, |n| format!("run {n}: "));
        // An expression is the caller's own, but nothing of it may act on a terminal either.
        Foreign::from(format!("{}: {run}{}", self.expression, self.found)).to_string()
    }
}

/// Text of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
