//! The command line of `cachestat`.

mod bench;
mod command;
mod help;
mod intervals;
mod recordings;
mod working_set;

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

pub use command::Watched;
pub use recordings::Recordings;

use super::CommandLine;
use super::Common;
use super::Filters;
use super::Generated;
use super::conflict;
use super::help::Section;
use super::read;
use super::read::ColumnList;
use crate::blame;
use crate::exit::Failure;
use crate::options::Counting;
use crate::options::Format;
use crate::pivot::By;
use crate::plan::Engine;
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

    fn sections() -> Vec<Section> {
        help::sections()
    }

    fn check(&self) -> Result<(), String> {
        if let Some((option, text)) = self.watched.stray(self.what_if.flatten().is_some()) {
            return Err(format!("'{option}' {text}"));
        }
        if let Some(text) = self.watched.bench.conflict(self.watched.repeat, self.watched.cold) {
            return conflict(&text);
        }
        if let Some(text) = self.watched.no_such_run() {
            return Err(text);
        }
        if self.watched.tried.is_some() && self.watched.bench.cold_each == Some(report::Cold::Slab) {
            return conflict("'--try' compares runs that begin without cached pages: not '--cold-each slab'");
        }
        let files = self.filters.by_file();
        if files && self.by == Some(By::Thread) {
            return conflict(
                "files are counted by process: '--by thread' cannot be used with '--file' or '--mount'",
            );
        }
        if self.common.how.classic() && self.by.is_some_and(|by| by != By::Process) {
            return conflict("the classic engine counts by process: take '--by process' or '--engine exact'");
        }
        if self.what_if.is_some() && self.common.how.classic() {
            return conflict("'--what-if' needs to know which pages are used: take '--engine exact'");
        }
        if self.watched.time.is_some() && self.filters.chosen().pids().len() > 1 {
            return conflict("'--for' explains one process and what it starts: take one '-p'");
        }
        if self.what_if.flatten().is_some() && self.filters.cgroup.len() > 1 {
            return conflict(
                "'--what-if' tells of one cache, whose size is that of a cgroup: take one '--cgroup'",
            );
        }
        match (self.what_if, self.watched.report()) {
            (Some(None), false) => {
                return conflict(
                    "'--what-if' needs to know how long to watch ('--what-if 60'), or a command ('-- COMMAND')",
                );
            }
            (Some(Some(_)), true) => {
                return conflict(
                    "a report is about the whole run: '--what-if' takes no SECONDS with '-- COMMAND' or '--for'",
                );
            }
            (Some(Some(_)), false) if self.unit.is_some() => {
                return conflict("'--what-if SECONDS' cannot be used with '--unit'");
            }
            (Some(Some(_)), false) if self.watched.html.as_deref() == Some(Path::new("-")) => {
                return conflict(
                    "'--what-if SECONDS' has its table on standard output: name a file for '--html'",
                );
            }
            (Some(None), true) if self.so_far.is_some() => {
                return conflict("a report is about the whole run: '--so-far' is for '--what-if SECONDS'");
            }
            _ => {}
        }
        if self.blame.is_some() && self.common.how.classic() {
            return conflict("'--blame' is counted by the exact engine: take '--engine exact'");
        }
        let report = self.watched.report();
        match self.blame {
            Some(None) if !report => {
                return Err(
                    "'--blame' needs to know how long: a number of seconds, or a command ('-- COMMAND')"
                        .into(),
                );
            }
            Some(Some(_)) if report => {
                return conflict(
                    "'--blame' of a command or of '--for' lasts as long as that: it takes no time",
                );
            }
            Some(Some(_)) if self.unit.is_some() => {
                return conflict("'--blame SECONDS' tells of bytes: it takes no '--unit'");
            }
            _ => {}
        }
        let recordings = &self.recordings;
        if self.by == Some(By::Evictor) {
            if recordings.record.is_some() || recordings.replay.is_some() {
                return conflict(
                    "'--by evictor' tells of now: it cannot be used with '--record' or '--replay'",
                );
            }
            if files {
                return conflict(
                    "'--by evictor' knows no files: it cannot be used with '--file' or '--mount' ('--blame' knows them)",
                );
            }
        }
        if self.working_set.is_some() {
            working_set::check(self)?;
        }
        recordings.check()?;
        if self.what_if.is_some() && (recordings.record.is_some() || recordings.replay.is_some()) {
            return conflict("'--what-if' tells of now: it cannot be used with '--record' or '--replay'");
        }
        if self.so_far.zip(self.what_if.flatten()).is_some_and(|(so_far, time)| so_far > time) {
            return conflict("'--so-far' is longer than '--what-if': nothing would be said before the end");
        }
        // clap lets it pass beside what excludes '--what-if'.
        if self.so_far.is_some() && self.what_if.is_none() {
            return conflict("'--so-far' is of '--what-if': it cannot be used without");
        }
        if self.blame.is_some() && (recordings.record.is_some() || recordings.replay.is_some()) {
            return conflict("'--blame' tells of now: it cannot be used with '--record' or '--replay'");
        }
        self.common.how.takes(&self.filters)?;
        if self.bcc && self.common.how.engine == Some(Engine::Both) {
            return conflict(
                "'--bcc' cannot be used with '--engine both': its layout has room for one engine",
            );
        }
        Ok(())
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
    read::time(text, "; to watch a command, put '--' before it: cachestat -- COMMAND")
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
