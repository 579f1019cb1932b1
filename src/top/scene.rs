//! What does not change while `cachetop` runs.

use std::path::PathBuf;
use std::time::Duration;

use crate::columns::Column;
use crate::figures::Figure;
use crate::pivot::By;
use crate::plan::Engine;
use crate::top::cells;

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Name of the machine.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// What counts.
    pub engine: Engine,
    /// What a person must know about it.
    pub notice: Option<String>,
    /// What `-p` and its like leave, in words; empty for everything.
    pub only: String,
    /// Figures that no row has on this kernel.
    pub unknown: Vec<Figure>,
    /// Whether processes have ended can be asked: not from within a PID namespace, where they have other numbers.
    pub told_of_ends: bool,
    /// Files are counted.
    pub files: bool,
    /// Who pushes pages out of the cache is counted.
    pub evictors: bool,
    /// Only some files count, so that rows have what is counted by file.
    pub by_file: bool,
    /// Read calls are timed.
    pub latency: bool,
    /// Bytes in a page.
    pub page_size: u64,
    /// The time zone of the clock.
    pub zone: jiff::tz::TimeZone,
    /// Where settings are kept, `None` if nowhere.
    pub config: Option<PathBuf>,
    /// It was recorded: nothing of it is of now, nor of this machine.
    pub replay: Option<Replayed>,
}

/// What is known of a recording that is shown.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// Length of its intervals.
    pub recorded: Duration,
    /// Length of those that count, which is kept with the settings.
    pub kept: Duration,
}

impl Scene {
    /// Whether this kernel gives any row a value in this column.
    #[must_use]
    pub fn knows(&self, column: &Column) -> bool {
        // Of a cgroup that was recorded nobody can be asked.
        (self.replay.is_none() || !column.of_cgroups())
            && !column.parts().iter().any(|figure| self.unknown.contains(figure))
    }

    /// Whether rows of this kind can have a value in this column.
    #[must_use]
    pub fn suits(&self, column: &Column, by: By) -> bool {
        cells::suits(column, if self.by_file { By::File } else { by }) && self.knows(column)
    }
}
