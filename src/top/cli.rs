//! The command line of `cachetop`: one definition for parsing, help, manual page and completions.

use std::path::PathBuf;
use std::time::Duration;

use clap::CommandFactory as _;
use clap::Parser;
use clap::ValueEnum;

use super::cells;
use super::help;
use super::settings::Settings;
use super::settings::Show;
use super::settings::Sort;
use crate::cli;
use crate::cli::ColumnList;
use crate::cli::Generated;
use crate::cli::Unit;
use crate::pivot::By;
use crate::plan::Engine;

const ABOUT: &str = "Page-cache hits and misses live, by process, file, cgroup or mount";

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where the terminal has them and NO_COLOR is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Page-cache hits and misses live, by process, file, cgroup or mount.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachetop", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(after_help = help::SHORT, after_long_help = help::long())]
pub struct Args {
    /// Length of an interval in seconds; fractions allowed (0.01 to a year) [default: 1]
    #[arg(value_name = "INTERVAL", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Option<Duration>,

    /// Write text, interval by interval, without a terminal (and for screen readers)
    #[arg(short = 'b', long)]
    pub batch: bool,

    /// Write one JSON object a line, as 'cachestat --json --by' does
    #[arg(long, conflicts_with_all = ["batch", "columns", "unit", "show", "sort", "reverse", "threads"])]
    pub json: bool,

    /// End after this many intervals
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = cli::count, allow_negative_numbers = true)]
    pub iterations: Option<u64>,

    /// What rows stand for [default: process]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,

    /// Sort by this column, or by 'busy' (all pages), 'id' or 'name' [default: busy]
    #[arg(short = 's', long, value_name = "COLUMN", value_parser = Sort::parse)]
    pub sort: Option<Sort>,

    /// Sort the other way round
    #[arg(short = 'r', long)]
    pub reverse: bool,

    /// Show these columns, separated by commas; 'cachetop --help' lists them
    #[arg(long, value_name = "LIST", value_parser = columns)]
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

    /// Count only this process, all its threads
    #[arg(short = 'p', long, value_name = "PID", value_parser = cli::pid, allow_negative_numbers = true)]
    pub pid: Option<u32>,

    /// Count only processes with this command name (its first 15 bytes)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub comm: Option<String>,

    /// Count only processes in this cgroup and those below it
    #[arg(long, value_name = "PATH", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub cgroup: Option<String>,

    /// Count only this file, whatever name it was opened by
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,

    /// Count only files of the file system that has this path
    #[arg(long, value_name = "PATH")]
    pub mount: Option<PathBuf>,

    /// Do not count files: cheaper, but no rows by file, mount or device
    #[arg(long)]
    pub no_files: bool,

    /// Time read calls as well, for stall_s and the histograms of the details
    #[arg(long)]
    pub latency: bool,

    /// Count this command's own reads and writes too
    #[arg(long)]
    pub include_self: bool,

    /// How to count: 'exact' (default), 'classic' as bcc does, or 'both' side by side
    #[arg(long, value_name = "ENGINE", value_parser = cli::engine)]
    pub engine: Option<Engine>,

    /// Room for this many threads in the kernel; the totals do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=4_194_304))]
    pub table_size: Option<u32>,

    /// Room for this many files of processes in the kernel, 1 KiB each
    #[arg(long, value_name = "N", default_value = "16384",
          value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub file_table: u32,

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

    /// Print which kernel hooks count what, and how exact each figure is here, and exit
    #[arg(long)]
    pub explain: bool,

    /// Behave as if the kernel had refused to attach this program (for tests)
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub refuse: Vec<String>,

    /// Print the manual page or shell completions, and exit
    #[arg(long, value_name = "WHAT", value_enum, hide = true)]
    pub generate: Option<Generated>,
}

impl Args {
    /// What goes together, beyond what the definition of options says.
    ///
    /// # Errors
    /// The message for whoever asked for it.
    pub fn check(&self) -> Result<(), clap::Error> {
        let conflict =
            |text: &str| Err(Self::command().error(clap::error::ErrorKind::ArgumentConflict, text));
        if self.no_files && self.by.is_some_and(By::files) {
            return conflict("'--no-files' cannot be used with rows by file, mount or device");
        }
        if self.no_files && self.by_file() {
            return conflict("'--no-files' cannot be used with '--file' or '--mount'");
        }
        if self.by_file() && (self.threads || self.by == Some(By::Thread)) {
            return conflict("files are counted by process: '--file' and '--mount' have no rows of threads");
        }
        if matches!(self.engine, Some(Engine::Classic | Engine::Both)) {
            if self.by.is_some_and(|by| by != By::Process) || self.threads {
                return conflict("the classic engine counts by process: take '--engine exact'");
            }
            if self.by_file() || self.comm.is_some() || self.cgroup.is_some() {
                return conflict("the classic engine knows no filter but '-p': take '--engine exact'");
            }
        }
        if self.top.is_some() && !self.plain() {
            return conflict("'--top' goes with '-b' or '--json': a screen shows as many rows as it holds");
        }
        Ok(())
    }

    /// Whether some files count only.
    #[must_use]
    pub const fn by_file(&self) -> bool {
        self.file.is_some() || self.mount.is_some()
    }

    /// Whether it writes lines and needs no terminal.
    #[must_use]
    pub const fn plain(&self) -> bool {
        self.batch || self.json
    }

    /// Puts what was asked for over the settings.
    pub fn apply(&self, settings: &mut Settings) {
        let s = settings;
        s.interval = self.interval.unwrap_or(s.interval);
        s.by = self.by.unwrap_or(s.by);
        s.unit = self.unit.unwrap_or(s.unit);
        s.show = self.show.unwrap_or(s.show);
        s.threads |= self.threads;
        s.mouse &= !self.no_mouse;
        if let Some(list) = &self.columns {
            s.columns.clone_from(&list.0);
            s.columns_are_default = false;
        }
        if let Some(sort) = self.sort {
            (s.sort, s.reverse) = (sort, false);
        }
        s.reverse ^= self.reverse;
    }
}

/// What `--generate` prints.
#[must_use]
pub fn generate(what: Generated) -> String {
    cli::generated(Args::command(), &help::manual(), what)
}

/// As `cachestat` reads it, without its hint at commands.
fn interval(text: &str) -> Result<Duration, String> {
    if text.chars().next().is_some_and(char::is_alphabetic) && text.parse::<f64>().is_err() {
        return Err("it is not a number of seconds".into());
    }
    cli::interval(text)
}

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
