//! Options that commands have in common.

use std::path::PathBuf;

use super::Generated;
use super::read;
use crate::options::Chosen;
use crate::options::Counting;
use crate::plan::Engine;

/// What counts.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Filters {
    /// Count only this process, all its threads
    #[arg(short = 'p', long, value_name = "PID", value_parser = read::pid, allow_negative_numbers = true)]
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
}

impl Filters {
    /// Whether only some files count.
    pub(super) const fn by_file(&self) -> bool {
        self.file.is_some() || self.mount.is_some()
    }

    /// The same without a command line.
    #[must_use]
    pub fn chosen(&self) -> Chosen {
        let Filters { pid, comm, cgroup, file, mount } = self.clone();
        Chosen { pid, comm, cgroup, file, mount }
    }
}

/// How it is counted.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct How {
    /// Count this command's own reads and writes too
    #[arg(long)]
    pub include_self: bool,

    /// How to count: 'exact' (default), 'classic' as bcc does, or 'both' side by side
    #[arg(long, value_name = "ENGINE", value_parser = read::engine)]
    pub engine: Option<Engine>,
}

impl How {
    /// Whether the classic engine counts, alone or beside the other.
    pub(super) const fn classic(&self) -> bool {
        matches!(self.engine, Some(Engine::Classic | Engine::Both))
    }
}

/// What a command says of itself.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Itself {
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

/// How it is counted, without a command line: with room for so many threads and files.
pub(super) fn counting(how: &How, itself: &Itself, threads: Option<u32>, files: u32) -> Counting {
    Counting {
        engine: how.engine,
        include_self: how.include_self,
        table_size: threads,
        file_table: Some(files),
        explain: itself.explain,
        refuse: itself.refuse.clone(),
    }
}
