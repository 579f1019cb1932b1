//! The command line of `cachestat`: one definition for parsing, help, manual page and completions.

mod command;
mod help;
mod start;

use std::path::PathBuf;
use std::time::Duration;

use clap::CommandFactory as _;
use clap::Parser;
use clap::ValueEnum;

pub use command::Watched;
pub(crate) use help::long_of;
pub(crate) use help::manual_sections;
pub(crate) use help::wrapped;
pub(crate) use start::generated;
pub use start::log;
pub use start::parse;

use crate::columns;
use crate::columns::Column;
use crate::figures::Figure;
use crate::pivot::By;
use crate::plan::Engine;
use crate::plan::Wants;

/// The shortest interval: below this the ticks themselves would be what is measured.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest interval: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What the command is for; the first line of every help.
const ABOUT: &str = "Page-cache hits and misses of the whole system, interval by interval";

/// Pages shown as pages or as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Pages of this machine: 4 KiB on x86.
    Pages,
    /// With K, M, G in text, plain numbers in CSV.
    Bytes,
}

/// What `--generate` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// The manual page.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
    /// Comma-separated values.
    Csv,
    /// bcc's columns.
    Bcc,
}

/// Page-cache hits and misses of the whole system, interval by interval.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachestat", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(
    override_usage = "cachestat [OPTIONS] [INTERVAL [COUNT]]\n       cachestat [OPTIONS] -- COMMAND [ARG]..."
)]
#[command(after_help = help::SHORT, after_long_help = help::long())]
pub struct Args {
    /// Length of an interval in seconds; fractions allowed (0.01 to a year)
    #[arg(value_name = "INTERVAL", default_value = "1", value_parser = interval, allow_negative_numbers = true)]
    pub interval: Duration,

    /// Number of intervals; without it, until Ctrl-C
    #[arg(value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub count: Option<u64>,

    /// Begin each line with the time of day (JSON and CSV always carry the time)
    #[arg(short = 'T', long)]
    pub timestamp: bool,

    /// Show the wide set of columns
    #[arg(short = 'x', long, conflicts_with = "columns")]
    pub extended: bool,

    /// Show these columns, separated by commas; 'cachestat --help' lists them
    #[arg(long, value_name = "LIST", value_parser = ColumnList::parse)]
    pub columns: Option<ColumnList>,

    /// Show counts of pages as pages or as bytes
    #[arg(long, value_name = "UNIT", value_enum, default_value = "pages")]
    pub unit: Unit,

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
    #[arg(long, value_name = "N", default_value = "10", requires = "by",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// Count only this process, all its threads
    #[arg(short = 'p', long, value_name = "PID", value_parser = pid, allow_negative_numbers = true)]
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
    /// Time read calls as well: stall_s in text and CSV, histograms in JSON (--json and a column stall_s imply it)
    #[arg(long, conflicts_with = "bcc")]
    pub latency: bool,

    /// Count this command's own reads and writes too
    #[arg(long)]
    pub include_self: bool,

    /// How to count: 'exact' (default), 'classic' as bcc does, or 'both' side by side
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub engine: Option<Engine>,

    /// Room for this many processes in the kernel; the totals do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=4_194_304))]
    pub table_size: Option<u32>,

    /// Room for this many files of processes in the kernel, 1 KiB each; used only where files are asked for
    #[arg(long, value_name = "N", default_value = "16384",
          value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub file_table: u32,

    /// Print which kernel hooks count what, and how exact each figure is here, and exit
    #[arg(long)]
    pub explain: bool,

    /// Behave as if the kernel had refused to attach this program (for tests)
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub refuse: Vec<String>,

    /// Print the manual page or shell completions, and exit
    #[arg(long, value_name = "WHAT", value_enum, hide = true)]
    pub generate: Option<Generated>,

    /// One command or process, explained.
    #[command(flatten)]
    pub watched: Watched,
}

/// The columns of `--columns`, in the order asked for.
#[derive(Debug, Clone)]
pub struct ColumnList(pub Vec<&'static Column>);

impl ColumnList {
    pub(crate) fn parse(list: &str) -> Result<Self, String> {
        columns::parse(list).map(Self)
    }

    fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|c| c.id)
    }
}

impl PartialEq for ColumnList {
    fn eq(&self, other: &Self) -> bool {
        self.ids().eq(other.ids())
    }
}

impl Eq for ColumnList {}

impl Args {
    /// The output format.
    #[must_use]
    pub const fn format(&self) -> Format {
        match (self.json, self.csv, self.bcc) {
            (true, ..) => Format::Json,
            (_, true, _) => Format::Csv,
            (_, _, true) => Format::Bcc,
            _ => Format::Text,
        }
    }

    /// What goes together, beyond what the definition of options says.
    ///
    /// # Errors
    /// The message for whoever asked for it.
    pub fn check(&self) -> Result<(), clap::Error> {
        let conflict =
            |text: &str| Err(Self::command().error(clap::error::ErrorKind::ArgumentConflict, text));
        if let Some((option, text)) = self.watched.stray() {
            return conflict(&format!("'{option}' {text}"));
        }
        let files = self.file.is_some() || self.mount.is_some();
        if files && self.by == Some(By::Thread) {
            return conflict(
                "files are counted by process: '--by thread' cannot be used with '--file' or '--mount'",
            );
        }
        if matches!(self.engine, Some(Engine::Classic | Engine::Both)) {
            if self.by.is_some_and(|by| by != By::Process) {
                return conflict(
                    "the classic engine counts by process: take '--by process' or '--engine exact'",
                );
            }
            if files || self.comm.is_some() || self.cgroup.is_some() {
                return conflict("the classic engine knows no filter but '-p': take '--engine exact'");
            }
        }
        if self.bcc && self.engine == Some(Engine::Both) {
            return conflict(
                "'--bcc' cannot be used with '--engine both': its layout has room for one engine",
            );
        }
        Ok(())
    }

    /// The columns to show: with `--latency`, the time of calls that missed as well.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static Column> {
        let mut columns = match &self.columns {
            Some(list) => return list.0.clone(),
            None if self.engine == Some(Engine::Classic) => columns::of_classic(self.extended),
            None if self.engine == Some(Engine::Both) => columns::of_both(self.extended),
            None if self.extended => columns::set(columns::WIDE),
            None if self.by.is_some() && self.format() == Format::Text => columns::set(columns::ROWS),
            None => columns::set(columns::DEFAULT),
        };
        if self.latency {
            let after = columns.iter().position(|c| c.id == "hit_ratio").map_or(0, |i| i + 1);
            columns.splice(after..after, columns::set(&["stall_s"]));
        }
        columns
    }

    /// Only a part of what happens is shown: its sums are made of rows.
    #[must_use]
    pub fn filters(&self) -> bool {
        self.pid.is_some()
            || self.comm.is_some()
            || self.cgroup.is_some()
            || self.file.is_some()
            || self.mount.is_some()
    }

    /// What has to be found out beyond the counts, which costs something at every read.
    #[must_use]
    pub fn wants(&self) -> Wants {
        let columns = self.columns();
        let shown = |figure| !self.bcc && columns.iter().any(|c| c.figure() == Some(figure));
        Wants {
            latency: self.latency || self.json || shown(Figure::StallNs),
            around: self.json || shown(Figure::FaultAround),
            ..Wants::default()
        }
    }
}

/// What `--generate` prints.
#[must_use]
pub fn generate(what: Generated) -> String {
    generated(Args::command(), &help::manual(), what)
}

/// A manual page: what clap knows, then what the long help tells beyond that.
pub(crate) fn manual_of(command: clap::Command, sections: &str) -> String {
    let man = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| man.render_synopsis_section(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| man.render_options_section(&mut text));
    let text = String::from_utf8_lossy(&text).into_owned();
    // Each section comes with the same two lines of preamble; once is enough.
    let (preamble, rest) = text.split_at(text.find(".TH").unwrap_or(0));
    format!("{preamble}{}{}", rest.replace(preamble, ""), sections)
}

/// Reads an interval in seconds.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let Ok(seconds) = text.parse::<f64>() else {
        let hint = match text.chars().next() {
            _ if text.contains(',') => "; write fractions with a point: 0.5",
            Some(c) if c.is_ascii_digit() => "; write it without a unit: 0.5",
            _ => "; to watch a command, put '--' before it: cachestat -- COMMAND",
        };
        return Err(format!("it is not a number of seconds{hint}"));
    };
    if seconds.is_nan() {
        return Err("it is not a number of seconds".into());
    }
    if seconds > LONGEST.as_secs_f64() {
        return Err(format!("it is longer than a year ({} seconds)", LONGEST.as_secs()));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= SHORTEST => Ok(interval),
        Ok(_) if seconds > 0.0 => Err("it is too short; the shortest interval is 0.01 seconds".into()),
        _ => Err("it must be more than 0 seconds".into()),
    }
}

/// Reads a number of intervals.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least one interval is needed".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("it is not a whole number of intervals".into()),
    }
}

/// Reads a process id.
pub(crate) fn pid(text: &str) -> Result<u32, String> {
    match text.parse::<i32>() {
        Ok(n) if n > 0 => Ok(n.unsigned_abs()),
        _ => Err("it is not a process id".into()),
    }
}

/// Reads the name of an engine.
pub(crate) fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "exact" => Ok(Engine::Exact),
        "classic" => Ok(Engine::Classic),
        "both" => Ok(Engine::Both),
        _ => Err("the engines are 'exact', 'classic' and 'both'".into()),
    }
}

#[cfg(test)]
mod tests;
