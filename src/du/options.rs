//! What `cachedu` is to do: plain values, whoever chose them.

use std::io;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use super::residency::Ask;
use super::residency::Method;
use super::row::Keep;
use super::row::Sort;
use super::totals::Totals;
use super::view::Shape;
use crate::options::Format;
use crate::text::numbers::Unit;

/// What is done with the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Task {
    /// Show what is cached of them.
    #[default]
    Show,
    /// Draw which pages are cached.
    Map,
    /// Browse the tree.
    Browse,
    /// Drop them from the cache; with `flush`, dirty pages as well.
    Evict {
        /// Write dirty pages to the disk first.
        flush: bool,
    },
    /// Read them into the cache.
    Load,
    /// Keep in this file which pages are cached.
    Save(PathBuf),
    /// Read the pages of this set into the cache.
    Restore(PathBuf),
    /// Compare two sets.
    Diff(PathBuf, PathBuf),
}

impl Task {
    /// Whether something is done to the files that are found, or kept of them: then all of them are needed.
    #[must_use]
    pub const fn acts(&self) -> bool {
        matches!(self, Task::Evict { .. } | Task::Load | Task::Save(_))
    }

    /// Whether what is cached changes.
    #[must_use]
    pub const fn changes(&self) -> bool {
        matches!(self, Task::Evict { .. } | Task::Load)
    }

    /// How things stand when it is interrupted.
    #[must_use]
    pub const fn interrupted(&self) -> &'static str {
        match self {
            Task::Evict { .. } | Task::Load | Task::Restore(_) => "what was done so far stays",
            Task::Save(_) => "nothing is saved",
            Task::Map => "some maps are missing",
            Task::Show | Task::Browse | Task::Diff(..) => {
                "no figures, for those of a part would be taken for all"
            }
        }
    }
}

/// Where the paths to look at are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// Paths end with a zero byte, not with their line.
    pub null: bool,
}

/// Processes whose files are looked at; each of these must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// These processes.
    pub pid: Vec<u32>,
    /// Those with one of these command names.
    pub comm: Vec<String>,
    /// Those of one of these users: names or numbers.
    pub user: Vec<String>,
    /// Those of one of these cgroups and below it.
    pub cgroup: Vec<String>,
    /// Those of the containers of these names or ids.
    pub container: Vec<String>,
    /// All.
    pub all: bool,
}

impl Processes {
    /// Whether there are any.
    #[must_use]
    pub fn any(&self) -> bool {
        let Self { pid, comm, user, cgroup, container, all } = self;
        *all || !pid.is_empty() || [comm, user, cgroup, container].iter().any(|names| !names.is_empty())
    }
}

/// What `cachedu` is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// What is done.
    pub task: Task,
    /// Files and directories.
    pub paths: Vec<PathBuf>,
    /// A list of more of them.
    pub list: Option<List>,
    /// Files of these processes instead.
    pub processes: Processes,
    /// Browse what was saved in this file, not what is there now.
    pub scan: Option<PathBuf>,
    /// Stay on the file system of each path.
    pub one_file_system: bool,
    /// Names that are left out.
    pub exclude: Vec<String>,
    /// Rows for directories down to so many levels.
    pub depth: Option<usize>,
    /// Rows for files, too.
    pub files: bool,
    /// Text as a tree, with shares.
    pub tree: bool,
    /// Rows for files only.
    pub files_only: bool,
    /// Order of the rows; `None`: files as named, anything else by what is cached.
    pub sort: Option<Sort>,
    /// The first rows only.
    pub top: Option<u32>,
    /// Only rows with so many bytes cached.
    pub min: Option<u64>,
    /// The columns of text and CSV, by their names in CSV; none: all of CSV, and what the layout of text has.
    pub columns: Vec<String>,
    /// No line with titles.
    pub no_header: bool,
    /// Pages as pages or as bytes; `None`: as the layout has it.
    pub unit: Option<Unit>,
    /// The output format.
    pub format: Format,
    /// Look again after so long, and show what changed.
    pub watch: Option<Duration>,
    /// Say how much of all of the page cache it is.
    pub explain: bool,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Restore devices and relative paths of a set, too.
    pub trust: bool,
    /// Number of threads; `None`: one for each processor.
    pub threads: Option<u32>,
    /// Ask with this system call only.
    pub method: Option<Method>,
    /// A row for each file that is evicted or loaded.
    pub verbose: bool,
    /// No progress line.
    pub quiet: bool,
}

impl Options {
    /// Whether files of processes are looked at, not paths.
    #[must_use]
    pub fn by_process(&self) -> bool {
        self.processes.any()
    }

    /// Whether rows are printed as they are found.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.task == Task::Show
            && self.format != Format::Text
            && self.sort.is_none()
            && self.top().is_none()
            && !self.by_process()
    }

    /// Whether a progress line is written.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        // What is printed meanwhile would stand in the same line.
        let shares = self.streams() && io::stdout().is_terminal();
        !self.quiet && io::stderr().is_terminal() && !shares
    }

    /// Whether JSON is written.
    #[must_use]
    pub fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// What is requested of tables.
    #[must_use]
    pub fn shape(&self) -> Shape<'_> {
        Shape {
            columns: &self.columns,
            no_header: self.no_header,
            unit: self.unit,
            sorted: self.sort.and_then(Sort::column),
        }
    }

    /// How to ask the kernel.
    #[must_use]
    pub fn ask(&self) -> Ask {
        self.method.map_or_else(Ask::best, Ask::by)
    }

    /// The number of rows shown, if it is limited.
    #[must_use]
    pub fn top(&self) -> Option<usize> {
        self.top.map(|n| n as usize).filter(|_| !self.task.acts())
    }

    /// The number of pages that must be cached of what has a row.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.min.map_or(0, |bytes| bytes.div_ceil(rustix::param::page_size() as u64))
    }

    /// What keeps the rows that are shown or acted on.
    #[must_use]
    pub fn keep(&self) -> Keep {
        Keep::new(self.sort.unwrap_or(Sort::Cached), self.top(), self.least())
    }

    /// What is acted on: what cannot change is left in peace, so files with nothing cached or all of it take no memory.
    #[must_use]
    pub fn needed(&self) -> fn(&Totals) -> bool {
        match self.task {
            Task::Evict { .. } | Task::Save(_) => |t| t.cached > 0 || t.unknown > 0,
            Task::Load => |t| t.cached < t.pages || t.unknown > 0,
            _ => |_| true,
        }
    }
}
