//! What is run or watched, and where the report goes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::assert::Assertion;
use super::cold::Cold;
use crate::options::Counting;
use crate::text::numbers::Unit;

/// Runs of one report at most, warm ones and those of all commands together: their figures are kept until the end.
pub const RUNS: usize = 1000;

/// What is run or watched, and where the report goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The command and its arguments; empty where a process is watched.
    pub command: Vec<OsString>,
    /// The process that is watched, for so long.
    pub watched: Option<(u32, Duration)>,
    /// Number of runs.
    pub repeat: u32,
    /// Number of runs before, which nobody sees.
    pub warmup: u32,
    /// Caches that are emptied before the first run.
    pub cold: Option<Cold>,
    /// Caches that are emptied before each run.
    pub cold_each: Option<Cold>,
    /// A `read_ahead_kb` for the second of two runs.
    pub tried: Option<u64>,
    /// Number of runs without that after each of those.
    pub warm_runs: u32,
    /// Lines of shell that are compared, in place of the command.
    pub compared: Vec<OsString>,
    /// A line of shell before each run.
    pub prepare: Option<String>,
    /// A line of shell after each run.
    pub conclude: Option<String>,
    /// A line of shell before all runs.
    pub setup: Option<String>,
    /// A line of shell after all runs.
    pub cleanup: Option<String>,
    /// Go on after a run that ends otherwise than the first.
    pub ignore_failure: bool,
    /// Throw away what is printed.
    pub discard_output: bool,
    /// Started through sudo, run the command as root all the same.
    pub as_root: bool,
    /// Wait until the last descendant has ended.
    pub wait_all: bool,
    /// The file for the report; `None`: standard error.
    pub output: Option<PathBuf>,
    /// The report as JSON, not as text.
    pub json: bool,
    /// Counts of pages as pages or as bytes, in text; `None`: as bytes.
    pub unit: Option<Unit>,
    /// All figures in text, not only the answer.
    pub verbose: bool,
    /// The file that keeps the figures.
    pub save: Option<PathBuf>,
    /// The figures to compare with.
    pub compare: Option<PathBuf>,
    /// Say what another size of the cache would have brought.
    pub what_if: bool,
    /// The file for a page with charts.
    pub html: Option<PathBuf>,
    /// What must hold of the runs.
    pub assertions: Vec<Assertion>,
    /// The file for what came of that, as JUnit XML.
    pub junit: Option<PathBuf>,
    /// The file for the groups, as hyperfine's JSON.
    pub export_json: Option<PathBuf>,
    /// The file for the groups as CSV.
    pub export_csv: Option<PathBuf>,
    /// The file for the groups as a table of Markdown.
    pub export_markdown: Option<PathBuf>,
    /// Who pushes whose pages out meanwhile is told, too.
    pub blame: bool,
    /// How it is counted.
    pub counting: Counting,
}

impl Options {
    /// The commands to run, each with its arguments.
    #[must_use]
    pub fn commands(&self) -> Vec<Vec<OsString>> {
        if self.compared.is_empty() {
            return vec![self.command.clone()];
        }
        self.compared.iter().map(|line| vec!["sh".into(), "-c".into(), line.clone()]).collect()
    }
}
