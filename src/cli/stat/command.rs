//! The options of `cachestat -- COMMAND`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use super::bench::Bench;
use super::intervals::INTERVALS;
use super::intervals::intervals_but_pid;
use crate::cli::read;
use crate::report::Cold;
use crate::report::assert::Assertion;

/// What `-- COMMAND` and `-p PID --for` understand beyond the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
#[command(next_help_heading = "One command")]
pub struct Watched {
    /// Run this command and explain what it and its descendants did
    #[arg(last = true, value_name = "COMMAND", group = "what", conflicts_with_all = INTERVALS,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,

    /// Write the report to this file instead of standard error
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Tell everything that is known, not only the answer
    #[arg(short = 'v', long, conflicts_with = "json")]
    pub verbose: bool,

    /// Run the command N times and compare the runs; at most 1000 in all
    #[arg(short = 'r', long, value_name = "N", default_value = "1", requires = "what",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Run it N times before, without counting
    #[arg(long, value_name = "N", default_value = "0", requires = "what",
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub warmup: u32,

    /// Empty caches of the whole machine before the first run (--cold-each: each): it slows everybody down for a while
    #[arg(long, value_name = "WHAT", value_enum, requires = "what")]
    pub cold: Option<Cold>,

    /// Run the command as it is, then with read_ahead_kb=N on the devices of its files; predict, compare, put it back
    #[arg(long = "try", value_name = "SETTING", value_parser = crate::report::trial::parse, requires = "what",
          conflicts_with_all = ["repeat", "warmup", "cold", "warm_runs", "compare_commands", "conclude", "time"])]
    pub tried: Option<u64>,

    /// Run this line of shell before each run, without counting
    #[arg(long, value_name = "LINE", requires = "what", value_hint = ValueHint::CommandString)]
    pub prepare: Option<String>,

    /// Keep the figures in this file, for --compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    /// Compare with the figures that --save (or --json) kept in this file
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,

    /// Write charts of the runs, or of --what-if SECONDS, to this file: one page of HTML that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// What must hold of each run, as 'hit_ratio > 95%' or 'run2.wall < 0.5 * run1.wall'; if not, the exit code is 3
    #[arg(long = "assert", value_name = "EXPR", value_parser = Assertion::parse)]
    pub assertions: Vec<Assertion>,

    /// Write what came of the assertions to this file, as JUnit XML
    #[arg(long, value_name = "FILE", requires = "assertions")]
    pub junit: Option<PathBuf>,

    /// Started through sudo, run the command as root all the same, not as the user who called
    #[arg(long, requires = "what")]
    pub as_root: bool,

    /// Wait until the last descendant has ended too, not only the command itself
    #[arg(long, requires = "what")]
    pub wait_all: bool,

    /// With -p: watch that process and its descendants for so long (10, 500ms, 2m, 1h), then report
    #[arg(long = "for", value_name = "TIME", value_parser = time, requires = "pid",
          allow_hyphen_values = true,
          conflicts_with = "what", conflicts_with_all = intervals_but_pid())]
    pub time: Option<Duration>,

    /// Benchmarks.
    #[command(flatten)]
    pub bench: Bench,
}

impl Watched {
    /// Whether a report is requested, not intervals.
    #[must_use]
    pub fn report(&self) -> bool {
        self.runs() || self.time.is_some()
    }

    /// What is wrong with a run that an assertion names, which would be found only when all of them had ended.
    pub(super) fn no_such_run(&self) -> Option<String> {
        let runs = if self.tried.is_some() { 2 } else { self.bench.runs(self.repeat) };
        let (assertion, run) = self.assertions.iter().find_map(|a| Some((a, a.run_beyond(runs)?)))?;
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        Some(format!("'--assert {}' is about run {run}, and there will be {runs}", assertion.text()))
    }

    /// Whether something is to be run.
    fn runs(&self) -> bool {
        !self.command.is_empty() || !self.bench.compare_commands.is_empty()
    }

    /// An option that was given without what it is for, and what that is. What `requires` says is not enough: clap
    /// waives it where an argument is there that conflicts with the required one, such as an interval. `predicts`: a
    /// prediction without a command has a page, too.
    pub(super) fn stray(&self, predicts: bool) -> Option<(&'static str, &'static str)> {
        let name =
            |given: &[(&'static str, bool)]| given.iter().find(|(_, given)| *given).map(|(name, _)| *name);
        if !self.runs() {
            let given = [
                ("--repeat", self.repeat != 1),
                ("--warmup", self.warmup != 0),
                ("--cold", self.cold.is_some()),
                ("--try", self.tried.is_some()),
                ("--prepare", self.prepare.is_some()),
                ("--as-root", self.as_root),
                ("--wait-all", self.wait_all),
            ];
            let given: Vec<_> = given.into_iter().chain(self.bench.of_commands()).collect();
            if let Some(option) = name(&given) {
                return Some((option, "is for a command: give one ('-- COMMAND')"));
            }
        }
        if self.report() {
            return None;
        }
        let given = [
            ("--output", self.output.is_some()),
            ("--verbose", self.verbose),
            ("--save", self.save.is_some()),
            ("--compare", self.compare.is_some()),
            ("--html", self.html.is_some() && !predicts),
            ("--assert", !self.assertions.is_empty()),
            ("--junit", self.junit.is_some()),
        ];
        let given: Vec<_> = given.into_iter().chain(self.bench.of_reports()).collect();
        let name = name(&given)?;
        Some(match name {
            "--html" => (
                name,
                "is for reports and predictions: give a command ('-- COMMAND'), '-p PID --for TIME' or \
                 '--what-if SECONDS'",
            ),
            _ => (name, "is for reports: give a command ('-- COMMAND') or '-p PID --for TIME'"),
        })
    }
}

/// Reads a length of time.
fn time(text: &str) -> Result<Duration, String> {
    read::time(text, "")
}
