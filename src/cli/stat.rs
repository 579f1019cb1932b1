//! The command line of `cachestat`.

mod bench;
mod command;
mod help;
mod intervals;
mod recordings;
mod together;
mod working_set;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

pub use command::Watched;
pub use recordings::Recordings;

use super::CommandLine;
use super::Common;
use super::Filters;
use super::Generated;
use super::Habits;
use super::Instead;
use super::conflict;
use super::habits;
use super::help::Section;
use super::instead;
use super::read;
use super::read::ColumnList;
use crate::blame;
use crate::exit::Failure;
use crate::options::Counting;
use crate::options::Format;
use crate::pivot::By;
use crate::report;
use crate::run::Options;
use crate::run::Set;
use crate::text::numbers::Unit;
use crate::whatif;
use crate::working;

/// What the command is for; the first line of every help.
const ABOUT: &str = "Page-cache hits and misses of the whole system, interval by interval";

/// What `cachestat` is to do.
#[derive(Debug, Clone)]
pub enum Task {
    /// Show intervals.
    Intervals(Box<Options>),
    /// Explain a command or a process.
    Report(Box<report::Options>),
    /// Predict what another size of the cache would bring; with a page of HTML in this file.
    WhatIf(Box<whatif::Options>, Option<PathBuf>),
    /// Say who pushed whose pages out.
    Blame(Box<blame::Options>),
    /// Say how many distinct pages are used, and by whom.
    WorkingSet(Box<working::Options>),
}

/// Page-cache hits and misses of the whole system, interval by interval.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachestat", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(
    override_usage = "cachestat [OPTIONS] [INTERVAL [COUNT]]\n       cachestat [OPTIONS] -- COMMAND [ARG]..."
)]
#[command(after_help = help::SHORT, after_long_help = super::help::long(help::sections()))]
pub struct Args {
    /// Length of an interval: seconds, or with a unit (0.5, 500ms, 1s, 2m, 1h); from 10ms to a year
    #[arg(value_name = "INTERVAL", default_value = "1", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Duration,

    /// Number of intervals; without it, until Ctrl-C
    #[arg(value_name = "COUNT", value_parser = read::count, allow_negative_numbers = true)]
    pub count: Option<u64>,

    /// Begin each line with the time of day (JSON and CSV always carry the time)
    #[arg(short = 'T', long)]
    pub timestamp: bool,

    /// Show the wide set of columns
    #[arg(short = 'x', long, conflicts_with = "columns")]
    pub extended: bool,

    /// Show these columns, separated by commas; 'cachestat --help' lists them
    #[arg(long, value_name = "LIST", value_parser = read::COLUMN_LIST, hide_possible_values = true)]
    pub columns: Option<ColumnList>,

    /// Show counts of pages as pages or as bytes [default: pages; of a command: bytes]
    #[arg(long, value_name = "UNIT", value_enum)]
    pub unit: Option<Unit>,

    /// Print one JSON object a line, with every figure
    #[arg(long, conflicts_with_all = ["csv", "bcc", "extended", "columns", "unit"])]
    pub json: bool,

    /// Print comma-separated values
    #[arg(long, conflicts_with = "bcc")]
    pub csv: bool,

    /// Print the columns of bcc's cachestat, for scripts that parse them (RAHITS count as MISSES there)
    #[arg(long, conflicts_with_all = ["extended", "columns", "unit", "by"])]
    pub bcc: bool,

    /// Below each interval, show rows for the busiest of these
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,

    /// Number of rows for each interval
    #[arg(long, value_name = "N", default_value = "10", default_value_if("export", clap::builder::ArgPredicate::IsPresent,
          "4294967295"), requires = "by", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// Watch for so long (10, 500ms, 2m, 1h), then predict the misses with ½ to 4 times the memory for the cache; of a
    /// command or with --for, without SECONDS, in its report
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, value_parser = what_if, allow_negative_numbers = true,
        conflicts_with_all = ["interval", "count", "timestamp", "extended", "columns", "csv", "bcc", "by", "top", "file", "mount"])]
    pub what_if: Option<Option<Duration>>,

    /// With --what-if SECONDS: say after each of these times, or, as it watches longer, less often, what is known so far (with --json one object a line)
    #[arg(long, value_name = "TIME", value_parser = what_if, requires = "what_if")]
    pub so_far: Option<Duration>,

    /// Watch for so long (10, 500ms, 2m, 1h), then say who pushed whose pages out of the cache, and which came back;
    /// without a time, of a command: while it ran
    #[arg(long, value_name = "SECONDS", value_parser = what_if, num_args = 0..=1, conflicts_with_all = [
        "interval", "count", "timestamp", "extended", "columns", "csv", "bcc", "by", "top", "file", "mount",
        "latency", "what_if"])]
    pub blame: Option<Option<Duration>>,

    /// Watch for so long (10, 500ms, 2m, 1h), then say how many distinct pages were used in the last 1, 5, 15 and 60
    /// minutes; with a number behind it (60 10) as many times in a row; with --by process, cgroup or file, by whom
    // Any number of words: of a third one it is said here what is wrong with it, where clap would take it for an INTERVAL.
    #[arg(long, value_name = "TIME", num_args = 1.., allow_negative_numbers = true, conflicts_with_all = [
        "interval", "count", "timestamp", "extended", "columns", "csv", "bcc", "file", "mount", "latency", "what_if",
        "blame"])]
    pub working_set: Option<Vec<String>>,

    /// What counts.
    #[command(flatten)]
    pub filters: Filters,

    /// Time read calls as well: stall_s in text and CSV, histograms in JSON (--json and a column stall_s imply it)
    #[arg(long, conflicts_with = "bcc")]
    pub latency: bool,

    /// How it is counted, with how much room, and what the command says of itself.
    #[command(flatten)]
    pub common: Common,

    /// Recordings.
    #[command(flatten)]
    pub recordings: Recordings,

    /// One command or process, explained.
    #[command(flatten)]
    pub watched: Watched,
}

impl CommandLine for Args {
    type Task = Task;

    const SHORT: &'static str = help::SHORT;
    const MANUAL: &'static str = help::MANUAL;
    const HABITS: Habits = habits::STAT;
    const INSTEAD: Instead = instead::STAT;

    fn sections() -> Vec<Section> {
        help::sections()
    }

    fn check(&self) -> Result<(), String> {
        together::check(self)
    }

    fn generated(&self) -> Option<Generated> {
        self.common.itself.generate
    }

    fn task(self) -> Result<Task, Failure> {
        // What a script writes when its variable is empty; without this it would be watched for ever.
        if std::env::args_os().next_back().is_some_and(|a| a == "--") && self.watched.command.is_empty() {
            return Err(Failure::usage("a COMMAND is required after '--'"));
        }
        if let Some(time) = self.what_if.flatten() {
            let (so_far, json, latency) = (self.so_far, self.json, self.latency);
            let (chosen, counting) = (self.filters.chosen(), self.counting());
            let options = whatif::Options { time, so_far, json, latency, chosen, counting };
            return Ok(Task::WhatIf(Box::new(options), self.watched.html));
        }
        if let Some(Some(time)) = self.blame {
            let (json, chosen, counting) = (self.json, self.filters.chosen(), self.counting());
            return Ok(Task::Blame(Box::new(blame::Options { time, json, chosen, counting })));
        }
        if let Some((interval, count)) = working_set::intervals(&self).map_err(Failure::usage)? {
            return Ok(Task::WorkingSet(Box::new(working::Options {
                interval,
                count,
                by: self.by,
                top: self.top as usize,
                unit: self.unit.unwrap_or(Unit::Pages),
                json: self.json,
                chosen: self.filters.chosen(),
                counting: self.counting(),
            })));
        }
        Ok(if self.watched.report() {
            Task::Report(Box::new(self.report()))
        } else {
            Task::Intervals(Box::new(self.options()))
        })
    }
}

impl Args {
    fn counting(&self) -> Counting {
        self.common.counting()
    }

    /// The intervals to show.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            interval: self.interval,
            count: self.count,
            timestamp: self.timestamp,
            format: match (self.json, self.csv) {
                (true, _) => Format::Json,
                (_, true) => Format::Csv,
                _ => Format::Text,
            },
            set: match (self.bcc, self.extended) {
                (true, _) => Set::Bcc,
                (_, true) => Set::Wide,
                _ => Set::Default,
            },
            columns: self.columns.as_ref().map(|list| list.0.clone()),
            unit: self.unit.unwrap_or(Unit::Pages),
            by: self.by,
            top: self.top as usize,
            latency: self.latency,
            chosen: self.filters.chosen(),
            counting: self.counting(),
            record: self.recordings.record.clone(),
            replay: self.recordings.replayed(),
            export: self.recordings.export.clone(),
        }
    }

    /// The command or the process to explain.
    fn report(&self) -> report::Options {
        let counting = self.counting();
        let watched = self.watched.clone();
        let bench = watched.bench;
        report::Options {
            command: watched.command,
            watched: watched.time.map(|time| (self.filters.pid.first().copied().unwrap_or(0), time)),
            repeat: if watched.tried.is_some() { 2 } else { watched.repeat },
            warmup: watched.warmup,
            cold: watched.cold,
            prepare: watched.prepare,
            as_root: watched.as_root,
            wait_all: watched.wait_all,
            output: watched.output,
            json: self.json,
            unit: self.unit,
            verbose: watched.verbose,
            save: watched.save,
            compare: watched.compare,
            what_if: self.what_if.is_some(),
            html: watched.html,
            assertions: watched.assertions,
            junit: watched.junit,
            // Both runs are to begin alike.
            cold_each: bench.cold_each.or(watched.tried.map(|_| report::Cold::Pagecache)),
            tried: watched.tried,
            warm_runs: bench.warm_runs,
            compared: bench.compare_commands,
            conclude: bench.conclude,
            setup: bench.setup,
            cleanup: bench.cleanup,
            ignore_failure: bench.ignore_failure,
            discard_output: bench.discard_output,
            export_json: bench.export_json,
            export_csv: bench.export_csv,
            export_markdown: bench.export_markdown,
            blame: self.blame.is_some(),
            counting,
        }
    }
}

/// Reads an interval.
fn interval(text: &str) -> Result<Duration, String> {
    read::time(text, &format!("; {}", habits::COMMAND))
}

/// Reads how long to watch.
fn what_if(text: &str) -> Result<Duration, String> {
    read::time(text, "")
}

#[cfg(test)]
impl Args {
    /// Reads words that are right.
    pub(crate) fn parse_from<T: Into<std::ffi::OsString> + Clone>(
        words: impl IntoIterator<Item = T>,
    ) -> Self {
        <Self as Parser>::parse_from(words)
    }
}

#[cfg(test)]
mod tests;
