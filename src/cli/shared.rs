//! Options that commands have in common.

use std::path::PathBuf;

use clap::ValueHint;

use super::Generated;
use super::conflict;
use super::read;
use crate::options::Chosen;
use crate::options::Counting;
use crate::plan::Engine;

/// What counts.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Filters {
    /// Count only these processes, all their threads
    #[arg(short = 'p', long, value_name = "PID", value_delimiter = ',', value_parser = read::pid,
          allow_negative_numbers = true)]
    pub pid: Vec<u32>,

    /// Count only processes with this command name (its first 15 bytes), or one of several: --comm A --comm B
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new(),
          value_hint = ValueHint::CommandName)]
    pub comm: Vec<String>,

    /// Count only what these users do: names or numbers
    #[arg(short = 'u', long, value_name = "USER", value_delimiter = ',',
          value_parser = clap::builder::NonEmptyStringValueParser::new(), value_hint = ValueHint::Username)]
    pub user: Vec<String>,

    /// Count only processes in this cgroup and those below it, or in one of several: --cgroup A --cgroup B
    #[arg(long, value_name = "PATH", value_parser = clap::builder::NonEmptyStringValueParser::new(),
          value_hint = ValueHint::DirPath)]
    pub cgroup: Vec<String>,

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
        let Filters { pid, comm, user, cgroup, file, mount } = self.clone();
        Chosen { pids: pid, comms: comm, users: user, cgroups: cgroup, file, mount }
    }
}

/// How it is counted.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct How {
    /// Count this command's own reads and writes too
    #[arg(long)]
    pub include_self: bool,

    /// How to count: 'exact' (default), 'classic' as bcc does, or 'both' side by side
    #[arg(long, value_name = "ENGINE", value_parser = read::ENGINE, hide_possible_values = true)]
    pub engine: Option<Engine>,
}

impl How {
    /// Whether the classic engine counts, alone or beside the other.
    pub(super) const fn classic(&self) -> bool {
        matches!(self.engine, Some(Engine::Classic | Engine::Both))
    }

    /// Whether it can count with these filters.
    pub(super) fn takes(&self, filters: &Filters) -> Result<(), String> {
        let Filters { pid: _, comm, user, cgroup, .. } = filters;
        let others = !(comm.is_empty() && user.is_empty() && cgroup.is_empty());
        if self.classic() && (filters.by_file() || others) {
            return conflict("the classic engine knows no filter but '-p': take '--engine exact'");
        }
        Ok(())
    }
}

/// For how much there is room in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Room {
    /// Room for this many threads in the kernel; LOST tells of those that had none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=4_194_304))]
    pub table_size: Option<u32>,

    /// Room for this many files of processes in the kernel, 1 KiB each; used only where files are counted
    #[arg(long, value_name = "N", default_value = "16384",
          value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub file_table: u32,
}

/// What a command says of itself.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Itself {
    /// Print which kernel hooks count what, how exact each figure is here, and the size of the tables, and exit
    #[arg(long)]
    pub explain: bool,

    /// Behave as if the kernel had refused to attach this program (for tests)
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub refuse: Vec<String>,

    /// Print the manual page or shell completions, and exit
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        hide_short_help = true,
        long_help = "Print the manual page or shell completions, and exit"
    )]
    pub generate: Option<Generated>,
}

/// What every command that counts has.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Common {
    /// How it is counted.
    #[command(flatten)]
    pub how: How,

    /// For how much there is room.
    #[command(flatten)]
    pub room: Room,

    /// What the command says of itself.
    #[command(flatten)]
    pub itself: Itself,
}

impl Common {
    /// What counts, and how.
    pub(super) fn counting(&self) -> Counting {
        Counting {
            engine: self.how.engine,
            include_self: self.how.include_self,
            table_size: self.room.table_size,
            file_table: Some(self.room.file_table),
            explain: self.itself.explain,
            refuse: self.itself.refuse.clone(),
        }
    }
}
