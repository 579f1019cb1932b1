//! The command line of `cachedu`.

mod help;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::ValueEnum;
use clap::ValueHint;

use super::CommandLine;
use super::Generated;
use super::Habits;
use super::Instead;
use super::conflict;
use super::habits;
use super::help::Section;
use super::help::fixed;
use super::instead;
use crate::du::options::List;
use crate::du::options::Options;
use crate::du::options::Processes;
use crate::du::options::Task;
use crate::du::printing;
use crate::du::row::Sort;
use crate::du::view::COLUMNS;
use crate::exit::Failure;
use crate::options::Format;
use crate::residency::Method;
use crate::text::numbers::Unit;

/// What the command is for; the first line of every help.
const ABOUT: &str = "Which files and directories are in the page cache, and in what pattern";

/// The system call to ask with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// cachestat(2), of Linux 6.5.
    Cachestat,
    /// mincore(2).
    Mincore,
}

/// Which files and directories are in the page cache, and in what pattern.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "cachedu", version, about = ABOUT, long_about = None, max_term_width = 80)]
#[command(
    override_usage = "cachedu [OPTIONS] [PATH]...\n       cachedu [OPTIONS] --pid PID | --comm NAME | \
                            --cgroup PATH | --all\n       cachedu --restore SET | --diff SET SET"
)]
#[command(after_help = help::SHORT, after_long_help = super::help::long(super::help::fixed(help::SECTIONS)))]
pub struct Args {
    /// Files and directories; a symbolic link stands for its target (default, but for --evict: the current directory)
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Read paths from FILE, one a line; '-' is standard input
    #[arg(long, value_name = "FILE", help_heading = "What to look at")]
    pub files_from: Option<PathBuf>,

    /// Paths of --files-from end with a zero byte, as 'find -print0' writes them
    #[arg(short = '0', long, requires = "files_from", help_heading = "What to look at")]
    pub null: bool,

    /// Stay on the file system of each PATH
    #[arg(short = 'x', long, help_heading = "What to look at")]
    pub one_file_system: bool,

    /// Leave out names that match; with a slash in it, paths or their ends, or (/, ./) one place
    #[arg(long, value_name = "GLOB", help_heading = "What to look at")]
    pub exclude: Vec<String>,

    /// Every file that these processes have open or mapped
    #[arg(short = 'p', long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)),
          conflicts_with_all = ["paths", "files_from"], help_heading = "What to look at")]
    pub pid: Vec<u32>,

    /// Every file that processes with this command name (of several: one of them) have open or mapped
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new(),
          value_hint = ValueHint::CommandName, conflicts_with_all = ["paths", "files_from"], help_heading = "What to look at")]
    pub comm: Vec<String>,

    /// Every file that processes of this user have open or mapped: names or numbers
    #[arg(short = 'u', long, value_name = "USER", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new(),
          value_hint = ValueHint::Username, conflicts_with_all = ["paths", "files_from"], help_heading = "What to look at")]
    pub user: Vec<String>,

    /// Every file that processes of this cgroup (of several: one of them) and those below it have open or mapped
    #[arg(long, value_name = "PATH", value_parser = clap::builder::NonEmptyStringValueParser::new(),
          value_hint = ValueHint::DirPath, conflicts_with_all = ["paths", "files_from"], help_heading = "What to look at")]
    pub cgroup: Vec<String>,

    /// Every file that processes of these containers have open or mapped: names, or beginnings of ids
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new(),
          conflicts_with_all = ["paths", "files_from"], help_heading = "What to look at")]
    pub container: Vec<String>,

    /// Every file that any process has open or mapped
    #[arg(long, conflicts_with_all = ["paths", "files_from", "pid", "comm", "user", "cgroup", "container"], help_heading = "What to look at")]
    pub all: bool,

    /// Show directories down to N levels below each PATH (default: 1)
    #[arg(short = 'd', long, value_name = "N", help_heading = "What to show")]
    pub depth: Option<usize>,

    /// Show directories in each other, with bars for their shares of what is cached
    #[arg(short = 't', long, conflicts_with_all = ["files_only", "map", "interactive", "json", "csv", "evict", "load", "save"], help_heading = "What to show")]
    pub tree: bool,

    /// Show files, too, not only directories
    #[arg(short = 'a', long, help_heading = "What to show")]
    pub files: bool,

    /// Show only files, at any depth
    #[arg(short = 'f', long, conflicts_with_all = ["files", "depth", "interactive"], help_heading = "What to show")]
    pub files_only: bool,

    /// Order of the rows (default: JSON and CSV as found, files as named, anything else by what is cached)
    #[arg(long, value_name = "BY", value_enum, help_heading = "What to show")]
    pub sort: Option<Sort>,

    /// Show the first N rows only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What to show")]
    pub top: Option<u32>,

    /// Show only rows with at least SIZE cached; K, M, G and T are powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "What to show")]
    pub min: Option<u64>,

    /// Show these columns, in this order; as in CSV: size_bytes,disk_bytes,pages,cached,cached_ratio,dirty,…
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(COLUMNS.iter().map(|c| c.id)), hide_possible_values = true,
          conflicts_with_all = ["json", "map", "interactive", "evict", "load", "save", "restore", "diff"], help_heading = "What to show")]
    pub columns: Vec<String>,

    /// No line with titles
    #[arg(long, conflicts_with_all = ["json", "map", "interactive", "evict", "load", "save", "restore", "diff"], help_heading = "What to show")]
    pub no_header: bool,

    /// Look again every so many SECONDS, and show what grew and shrank
    #[arg(long, value_name = "SECONDS", value_parser = seconds,
          conflicts_with_all = ["json", "csv", "tree", "sort", "min", "unit", "columns", "no_header", "explain", "map", "interactive", "evict", "load", "save", "restore", "diff"],
          help_heading = "What to show")]
    pub watch: Option<Duration>,

    /// Say on stderr how much of the whole page cache this is, and where the rest may be
    #[arg(long, conflicts_with_all = ["map", "interactive", "evict", "load", "save", "restore", "diff"], help_heading = "What to show")]
    pub explain: bool,

    /// Show pages as pages or as bytes (default: pages for files, bytes for directories)
    #[arg(long, value_name = "UNIT", value_enum, help_heading = "What to show")]
    pub unit: Option<Unit>,

    /// Draw which pages of each file are cached: runs, holes, and how they repeat
    #[arg(long, conflicts_with_all = ["top", "depth", "exclude", "min"], help_heading = "What to show")]
    pub map: bool,

    /// Browse the tree: filter, sort, map, load, evict
    #[arg(short = 'i', long, conflicts_with_all = ["json", "csv", "map", "files_from"], help_heading = "What to show")]
    pub interactive: bool,

    /// With -i: browse what 'cachedu --json -a -d 999 PATH' wrote to FILE, packed by gzip or not
    #[arg(long, value_name = "FILE", conflicts_with_all = ["one_file_system", "exclude"], help_heading = "What to show")]
    pub scan: Option<PathBuf>,

    /// Print one JSON object a line
    #[arg(long, conflicts_with_all = ["csv", "unit"], help_heading = "What to show")]
    pub json: bool,

    /// Print comma-separated values
    #[arg(long, conflicts_with_all = ["unit", "map"], help_heading = "What to show")]
    pub csv: bool,

    /// Drop the files from the cache; mapped pages stay, dirty ones until written
    #[arg(long, conflicts_with_all = ["load", "save", "map", "interactive", "top", "depth"], help_heading = "Acting")]
    pub evict: bool,

    /// Write dirty pages to the disk first, so that they can go as well
    #[arg(long, requires = "evict", help_heading = "Acting")]
    pub flush: bool,

    /// Read the files into the cache; holes are left out
    #[arg(long, conflicts_with_all = ["save", "map", "interactive", "top", "depth"], help_heading = "Acting")]
    pub load: bool,

    /// With --evict, --load or --restore: say what would be done, and do nothing
    #[arg(short = 'n', long, help_heading = "Acting")]
    pub dry_run: bool,

    /// With --evict, --load or --restore: a row for each file
    #[arg(short = 'v', long, conflicts_with_all = ["json"], help_heading = "Acting")]
    pub verbose: bool,

    /// Write to SET which pages of the files are cached; '-' is standard output
    #[arg(long, value_name = "SET", conflicts_with_all = ["map", "interactive", "json", "csv", "top", "depth"], help_heading = "Acting")]
    pub save: Option<PathBuf>,

    /// Read the pages of SET into the cache
    #[arg(long, value_name = "SET", exclusive = false,
          conflicts_with_all = ["paths", "files_from", "pid", "comm", "user", "cgroup", "container", "all", "save", "map", "interactive", "evict", "load", "csv"],
          help_heading = "Acting")]
    pub restore: Option<PathBuf>,

    /// With --restore: devices and paths that are not whole, too
    #[arg(long, help_heading = "Acting")]
    pub trust: bool,

    /// Compare two sets that --save wrote
    #[arg(long, value_names = ["SET", "SET"], num_args = 2,
          conflicts_with_all = ["paths", "files_from", "pid", "comm", "user", "cgroup", "container", "all", "save", "restore", "map", "interactive", "evict", "load", "csv"],
          help_heading = "Acting")]
    pub diff: Option<Vec<PathBuf>>,

    /// Number of threads (default: one for each processor)
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "How")]
    pub threads: Option<u32>,

    /// Ask with this system call only (default: cachestat(2), else mincore(2))
    #[arg(long, value_name = "CALL", value_enum, help_heading = "How")]
    pub method: Option<By>,

    /// No progress line
    #[arg(short = 'q', long, help_heading = "How")]
    pub quiet: bool,

    /// Print the manual page or shell completions, and exit
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        hide_short_help = true,
        long_help = "Print the manual page or shell completions, and exit",
        help_heading = "How"
    )]
    pub generate: Option<Generated>,
}

impl CommandLine for Args {
    type Task = Options;

    const SHORT: &'static str = help::SHORT;
    const MANUAL: &'static str = help::MANUAL;
    const HABITS: Habits = habits::DU;
    const INSTEAD: Instead = instead::DU;

    fn sections() -> Vec<Section> {
        fixed(help::SECTIONS)
    }

    fn check(&self) -> Result<(), String> {
        // The definition waives what is required where another option excludes it.
        if self.null && self.files_from.is_none() {
            return conflict("'--null' needs '--files-from'");
        }
        if self.flush && !self.evict {
            return conflict("'--flush' needs '--evict'");
        }
        // Where somebody stands is no request to empty it: a tree that others work on is slow for all of them then.
        if self.evict && self.paths.is_empty() && self.files_from.is_none() && !self.processes() {
            return conflict("'--evict' needs a PATH: '.' is the current directory");
        }
        if self.dry_run && !(self.evict || self.load || self.restore.is_some()) {
            return conflict("'--dry-run' needs '--evict', '--load' or '--restore'");
        }
        if self.verbose && !(self.evict || self.load || self.restore.is_some()) {
            return conflict("'--verbose' needs '--evict', '--load' or '--restore'");
        }
        if self.trust && self.restore.is_none() {
            return conflict("'--trust' needs '--restore'");
        }
        if self.csv && (self.evict || self.load) {
            return conflict("'--evict' and '--load' print text or '--json'");
        }
        if self.scan.is_some() && !self.interactive {
            return conflict("'--scan' needs '-i'");
        }
        if self.interactive && self.processes() {
            return conflict("'-i' browses directories: give a PATH");
        }
        // What would have no effect means something to whoever writes it: that less is looked at or done.
        let narrow = [
            ("--one-file-system", self.one_file_system),
            ("--depth", self.depth.is_some()),
            ("--exclude", !self.exclude.is_empty()),
            ("--min", self.min.is_some()),
            ("--top", self.top.is_some()),
            ("--files-only", self.files_only),
            ("--files", self.files),
            ("--sort", self.sort.is_some()),
            ("--unit", self.unit.is_some()),
            ("--tree", self.tree),
        ];
        for (mode, on, heeded) in [
            ("--restore", self.restore.is_some(), &[][..]),
            ("--diff", self.diff.is_some(), &[]),
            ("-i", self.interactive, &["--one-file-system", "--exclude", "--sort"]),
            (
                "--pid, --comm, --user, --cgroup, --container and --all",
                self.processes(),
                &["--exclude", "--min", "--top", "--files-only", "--files", "--sort", "--unit"],
            ),
        ] {
            let vain = narrow.iter().find(|(option, given)| on && *given && !heeded.contains(option));
            if let Some((option, _)) = vain {
                return Err(format!("'{option}' has no effect with {mode}"));
            }
        }
        Ok(())
    }

    fn generated(&self) -> Option<Generated> {
        self.generate
    }

    fn print(text: &str) -> Result<(), Failure> {
        printing::print(text.as_bytes(), &mut io::stdout().lock())
    }

    fn task(self) -> Result<Options, Failure> {
        Ok(self.options())
    }
}

impl Args {
    /// Whose files are looked at.
    fn chosen(&self) -> Processes {
        Processes {
            pid: self.pid.clone(),
            comm: self.comm.clone(),
            user: self.user.clone(),
            cgroup: self.cgroup.clone(),
            container: self.container.clone(),
            all: self.all,
        }
    }

    /// Whether files of processes are looked at.
    fn processes(&self) -> bool {
        self.chosen().any()
    }

    fn task(&self) -> Task {
        match self {
            Args { diff: Some(sets), .. } => Task::Diff(sets[0].clone(), sets[1].clone()),
            Args { interactive: true, .. } => Task::Browse,
            Args { restore: Some(set), .. } => Task::Restore(set.clone()),
            Args { map: true, .. } => Task::Map,
            Args { save: Some(set), .. } => Task::Save(set.clone()),
            Args { evict: true, flush, .. } => Task::Evict { flush: *flush },
            Args { load: true, .. } => Task::Load,
            _ => Task::Show,
        }
    }

    /// What is to be done, apart from how it was written.
    #[must_use]
    pub fn options(&self) -> Options {
        let args = self.clone();
        Options {
            task: self.task(),
            paths: args.paths,
            list: args.files_from.map(|file| List { file, null: self.null }),
            processes: self.chosen(),
            scan: args.scan,
            one_file_system: args.one_file_system,
            exclude: args.exclude,
            depth: args.depth,
            files: args.files,
            files_only: args.files_only,
            tree: args.tree,
            sort: args.sort,
            top: args.top,
            min: args.min,
            columns: args.columns,
            no_header: args.no_header,
            watch: args.watch,
            explain: args.explain,
            unit: args.unit,
            format: match (args.json, args.csv) {
                (true, _) => Format::Json,
                (_, true) => Format::Csv,
                _ => Format::Text,
            },
            dry_run: args.dry_run,
            trust: args.trust,
            threads: args.threads,
            method: args.method.map(|by| match by {
                By::Cachestat => Method::Cachestat,
                By::Mincore => Method::Mincore,
            }),
            verbose: args.verbose,
            quiet: args.quiet,
        }
    }
}

/// Reads a time between looks.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number of seconds".to_string())?;
    // Nobody waits longer, and nothing is looked at faster.
    if (0.1..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("from 0.1 to 86400 seconds".into())
    }
}

/// Reads a size in bytes.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err("the letters are K, M, G and T".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "it is not a whole number of bytes".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "it is too large".into())
}

#[cfg(test)]
mod tests;
