//! The command line of `cachetop`.

mod help;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValue;

use super::CommandLine;
use super::Common;
use super::Filters;
use super::Generated;
use super::Habits;
use super::conflict;
use super::habits;
use super::help::Section;
use super::read;
use super::read::ColumnList;
use super::read::Named;
use crate::columns::COLUMNS;
use crate::exit::Failure;
use crate::pivot::By;
use crate::record::replay::When;
use crate::text::numbers::Unit;
use crate::top::cells;
use crate::top::options::Changes;
use crate::top::options::Color;
use crate::top::options::Config;
use crate::top::options::Options;
use crate::top::options::Output;
use crate::top::settings::Show;
use crate::top::settings::Sort;

const ABOUT: &str = "Page-cache hits and misses live, by process, file, cgroup or mount";

/// Page-cache hits and misses live, by process, file, cgroup or mount.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachetop", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(override_usage = "cachetop [OPTIONS] [INTERVAL]")]
#[command(after_help = help::SHORT, after_long_help = super::help::long(help::sections()))]
pub struct Args {
    /// Length of an interval: seconds, or with a unit (0.5, 500ms, 1s, 2m, 1h); from 10ms to a year [default: 1]
    #[arg(value_name = "INTERVAL", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Option<Duration>,

    /// Write text, interval by interval, without a terminal (and for screen readers)
    #[arg(short = 'b', long)]
    pub batch: bool,

    /// Write one JSON object a line, as 'cachestat --json --by' does
    #[arg(long, conflicts_with_all = ["batch", "columns", "unit", "show", "sort", "reverse", "threads"])]
    pub json: bool,

    /// End after this many intervals
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = read::count, allow_negative_numbers = true)]
    pub iterations: Option<u64>,

    /// What rows stand for [default: process]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,

    /// Sort by this column, or by 'busy' (all pages), 'id' or 'name' [default: busy]
    #[arg(short = 's', long, value_name = "COLUMN", value_parser = SORT, hide_possible_values = true)]
    pub sort: Option<Sort>,

    /// Sort the other way round
    #[arg(short = 'r', long)]
    pub reverse: bool,

    /// Show these columns, separated by commas; 'cachetop --help' lists them
    #[arg(long, value_name = "LIST", value_parser = COLUMN_LIST, hide_possible_values = true)]
    pub columns: Option<ColumnList>,

    /// Show counts of pages as pages or as bytes [default: pages]
    #[arg(long, value_name = "UNIT", value_enum)]
    pub unit: Option<Unit>,

    /// Show counts of the interval, the same per second, or totals since start [default: count]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub show: Option<Show>,

    /// Show threads below their processes
    #[arg(short = 't', long)]
    pub threads: bool,

    /// With -b or --json, number of rows for each interval [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,

    /// What counts.
    #[command(flatten)]
    pub filters: Filters,

    /// Do not count files: cheaper, but no rows by file, mount or device
    #[arg(long)]
    pub no_files: bool,

    /// Time read calls as well, for stall_s and the histograms of the details
    #[arg(long)]
    pub latency: bool,

    /// Show what 'cachestat --record' or 'cachetopd --record' wrote to this file or directory, with keys for the time
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "include_self", "engine", "table_size", "explain", "refuse", "no_files", "latency"
    ])]
    pub replay: Option<PathBuf>,

    /// Begin the replay there: 14:00, '2026-11-23 14:00', 2026-11-23T14:00:00Z, '3m ago'
    #[arg(long, value_name = "WHEN", requires = "replay", value_parser = When::parse)]
    pub from: Option<When>,

    /// Read settings from this file, and save them there
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,

    /// Neither read nor save settings
    #[arg(long)]
    pub no_config: bool,

    /// Leave the mouse to the terminal
    #[arg(long)]
    pub no_mouse: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub color: Color,

    /// How it is counted, with how much room, and what the command says of itself.
    #[command(flatten)]
    pub common: Common,
}

impl CommandLine for Args {
    type Task = Options;

    const SHORT: &'static str = help::SHORT;
    const MANUAL: &'static str = help::MANUAL;
    const HABITS: Habits = habits::TOP;

    fn sections() -> Vec<Section> {
        help::sections()
    }

    fn check(&self) -> Result<(), String> {
        let by_file = self.filters.by_file();
        if self.no_files && self.by.is_some_and(By::files) {
            return conflict("'--no-files' cannot be used with rows by file, mount or device");
        }
        if self.no_files && by_file {
            return conflict("'--no-files' cannot be used with '--file' or '--mount'");
        }
        if by_file && (self.threads || self.by == Some(By::Thread)) {
            return conflict("files are counted by process: '--file' and '--mount' have no rows of threads");
        }
        if self.common.how.classic() && (self.by.is_some_and(|by| by != By::Process) || self.threads) {
            return conflict("the classic engine counts by process: take '--engine exact'");
        }
        if self.by == Some(By::Evictor) {
            if self.replay.is_some() {
                return conflict("'--by evictor' tells of now: it cannot be used with '--replay'");
            }
            if by_file {
                return conflict(
                    "'--by evictor' knows no files: it cannot be used with '--file' or '--mount'",
                );
            }
        }
        self.common.how.takes(&self.filters)?;
        if self.top.is_some() && !(self.batch || self.json) {
            return conflict("'--top' goes with '-b' or '--json': a screen shows as many rows as it holds");
        }
        Ok(())
    }

    fn generated(&self) -> Option<Generated> {
        self.common.itself.generate
    }

    fn task(self) -> Result<Options, Failure> {
        Ok(self.options())
    }
}

impl Args {
    /// What is to be done, apart from how it was written.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            output: match (self.json, self.batch) {
                (true, _) => Output::Json,
                (_, true) => Output::Text,
                _ => Output::Screen,
            },
            iterations: self.iterations,
            changes: Changes {
                interval: self.interval,
                by: self.by,
                columns: self.columns.as_ref().map(|list| list.0.clone()),
                sort: self.sort,
                reverse: self.reverse,
                unit: self.unit,
                show: self.show,
                threads: self.threads,
                no_mouse: self.no_mouse,
            },
            top: self.top,
            no_files: self.no_files,
            latency: self.latency,
            config: match (&self.config, self.no_config) {
                (_, true) => Config::Nowhere,
                (Some(path), _) => Config::File(path.clone()),
                (None, _) => Config::Usual,
            },
            color: self.color,
            chosen: self.filters.chosen(),
            counting: self.common.counting(),
            replay: self.replay.clone().map(|path| (path, self.from.clone())),
        }
    }
}

/// Reads an interval.
fn interval(text: &str) -> Result<Duration, String> {
    read::time(text, "")
}

/// What rows can be sorted by.
const SORT: Named<Sort> = Named {
    read: Sort::parse,
    names: || {
        let others = [
            ("busy", "All pages and events together"),
            ("id", "Process, thread or user id"),
            ("name", "The name in the last column"),
        ];
        let others = others.map(|(name, about)| PossibleValue::new(name).help(about));
        others.into_iter().chain((COLUMN_LIST.names)()).collect()
    },
};

/// A list of columns of rows.
const COLUMN_LIST: Named<ColumnList> =
    Named { read: columns, names: || read::names_of(COLUMNS.iter().filter(|c| cells::suits_rows(c))) };

/// Columns by their names or titles; those that no row has are refused.
fn columns(list: &str) -> Result<ColumnList, String> {
    let names: Vec<_> = list.split(',').map(|n| cells::find(n.trim()).map_or(n, |c| c.id)).collect();
    let columns = ColumnList::parse(&names.join(","))?;
    match columns.0.iter().find(|c| !cells::suits_rows(c)) {
        Some(c) => Err(format!("'{}' is known of the whole system only: 'cachestat' shows it", c.id)),
        None => Ok(columns),
    }
}

#[cfg(test)]
mod tests;
