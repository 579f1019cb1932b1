//! The options that make `cachestat -- COMMAND` a benchmark.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;

use super::intervals::INTERVALS;
use crate::report::Cold;
use crate::report::options::RUNS;

/// Cold and warm runs, and one command against another.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
#[command(next_help_heading = "Benchmarks")]
pub struct Bench {
    /// Run these lines of shell in turns (A B A B), -r times each, and compare them
    #[arg(long, value_name = "LINE", num_args = 2..=26, group = "what", conflicts_with_all = INTERVALS,
          value_hint = ValueHint::CommandString)]
    pub compare_commands: Vec<OsString>,

    /// Empty caches of the whole machine before each run, not only before the first
    #[arg(long, value_name = "WHAT", value_enum, requires = "what", conflicts_with = "cold")]
    pub cold_each: Option<Cold>,

    /// After each cold run of --cold-each, run it N times more without emptying
    #[arg(long, value_name = "N", default_value = "0", requires = "cold_each",
          value_parser = clap::value_parser!(u32).range(0..=999))]
    pub warm_runs: u32,

    /// Run this line of shell once, before all runs
    #[arg(long, value_name = "LINE", requires = "what", value_hint = ValueHint::CommandString)]
    pub setup: Option<String>,

    /// Run this line of shell after each run, without counting
    #[arg(long, value_name = "LINE", requires = "what", value_hint = ValueHint::CommandString)]
    pub conclude: Option<String>,

    /// Run this line of shell once, after all runs
    #[arg(long, value_name = "LINE", requires = "what", value_hint = ValueHint::CommandString)]
    pub cleanup: Option<String>,

    /// Go on after a run that ends otherwise than the first did, and end with 0
    #[arg(long, requires = "what")]
    pub ignore_failure: bool,

    /// Throw away what the command prints, and show on the terminal how far it has come
    #[arg(long, requires = "what")]
    pub discard_output: bool,

    /// Write means and times of all runs to this file, in the shape of hyperfine's JSON
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the means to this file as CSV
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write the means to this file as a table of Markdown
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
}

impl Bench {
    /// Options that need something to run, and whether they were given.
    pub(super) fn of_commands(&self) -> [(&'static str, bool); 7] {
        [
            ("--cold-each", self.cold_each.is_some()),
            ("--warm-runs", self.warm_runs != 0),
            ("--setup", self.setup.is_some()),
            ("--conclude", self.conclude.is_some()),
            ("--cleanup", self.cleanup.is_some()),
            ("--ignore-failure", self.ignore_failure),
            ("--discard-output", self.discard_output),
        ]
    }

    /// Options that need a report, and whether they were given.
    pub(super) fn of_reports(&self) -> [(&'static str, bool); 3] {
        [
            ("--export-json", self.export_json.is_some()),
            ("--export-csv", self.export_csv.is_some()),
            ("--export-markdown", self.export_markdown.is_some()),
        ]
    }

    /// Runs that the report will have.
    pub(super) fn runs(&self, repeat: u32) -> u64 {
        u64::from(repeat) * (1 + u64::from(self.warm_runs)) * self.compare_commands.len().max(1) as u64
    }

    /// What does not go together, in words.
    pub(super) fn conflict(&self, repeat: u32, cold: Option<Cold>) -> Option<String> {
        let commands = self.compare_commands.len().max(1) as u64;
        let runs = self.runs(repeat);
        if runs > RUNS as u64 {
            return Some(format!(
                "that makes {runs} runs; a report has {RUNS} at most: take a smaller '--repeat'"
            ));
        }
        if cold.is_some() && commands > 1 {
            return Some(
                "'--cold' with '--compare-commands' would empty what another of the commands had warmed: take \
                 '--cold-each', with '--warm-runs N' for warm runs as well"
                    .into(),
            );
        }
        None
    }
}
