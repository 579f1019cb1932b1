//! What a person can change about the view: from the command line, the configuration file, or by keys.

use std::time::Duration;

use crate::columns::Column;
pub use crate::live::snapshot::Ended;
pub use crate::live::snapshot::Show;
use crate::pivot::By;
use crate::plan::Engine;
use crate::text::numbers::Unit;
use crate::top::cells;
use crate::top::scene::Scene;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy)]
pub enum Sort {
    /// All pages and events together, and bytes of direct I/O as pages: the busiest first.
    Busy,
    /// A column, the largest first.
    Column(&'static Column),
    /// Process, thread or user id, the smallest first.
    Id,
    /// The name in the last column, in alphabetical order.
    Name,
}

impl Sort {
    /// Reads a name: `busy`, `id`, `name`, or that of a column.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().as_str() {
            "busy" => Ok(Sort::Busy),
            "id" | "pid" | "tid" | "uid" => Ok(Sort::Id),
            "name" | "command" | "comm" => Ok(Sort::Name),
            _ => {
                let found = cells::find(name).filter(|c| cells::sorts_rows(c)).map(Sort::Column);
                found.ok_or_else(|| match cells::find(name).is_some_and(cells::suits_rows) {
                    true => {
                        format!("'{name}' is asked for the rows on the screen only: none are sorted by it")
                    }
                    false => format!("rows have no column '{name}'; 'cachetop --help' lists them"),
                })
            }
        }
    }

    /// The name that [`Sort::parse`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Column(column) => column.id,
            Sort::Busy => "busy",
            Sort::Id => "id",
            Sort::Name => "name",
        }
    }
}

impl PartialEq for Sort {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Sort {}

/// Everything that can be changed while it runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Length of an interval.
    pub interval: Duration,
    /// What rows stand for.
    pub by: By,
    /// Columns with figures, in order; those that do not fit are left out from the right.
    pub columns: Vec<&'static Column>,
    /// Whether the columns are the default ones, which differ from pivot to pivot.
    pub columns_are_default: bool,
    /// Columns that were chosen for one kind of rows: for this one they stand before `columns`.
    pub own: Vec<(By, Vec<&'static Column>)>,
    /// What rows are sorted by.
    pub sort: Sort,
    /// Sorted the other way round.
    pub reverse: bool,
    /// Pages or bytes.
    pub unit: Unit,
    /// Counts, rates or totals.
    pub show: Show,
    /// Threads below their processes.
    pub threads: bool,
    /// How processes are shown that have ended.
    pub ended: Ended,
    /// The mouse is used; the terminal's own selection then needs Shift.
    pub mouse: bool,
}

impl Settings {
    /// Those in force unless others are requested.
    #[must_use]
    pub fn for_engine(engine: Engine) -> Self {
        let columns = cells::default_columns(engine);
        Self {
            interval: Duration::from_secs(1),
            by: By::Process,
            sort: Sort::Busy,
            columns,
            columns_are_default: true,
            own: Vec::new(),
            reverse: false,
            unit: Unit::Pages,
            show: Show::Count,
            threads: false,
            ended: Ended::Command,
            mouse: true,
        }
    }

    /// The columns of rows of a kind, as far as they suit them.
    #[must_use]
    pub fn columns_of(&self, by: By, scene: &Scene) -> Vec<&'static Column> {
        if let Some((_, own)) = self.own.iter().find(|(kind, _)| *kind == by) {
            return own.clone();
        }
        let all = self.columns.iter().copied();
        if by == By::Evictor {
            // None of the usual ones is theirs.
            let chosen = all.filter(|c| !self.columns_are_default && scene.suits(c, by));
            return Some(chosen.collect())
                .filter(|c: &Vec<_>| !c.is_empty())
                .unwrap_or_else(|| cells::of_evictors().into_iter().filter(|c| scene.knows(c)).collect());
        }
        match self.columns_are_default {
            true => all.filter(|c| scene.suits(c, by)).collect(),
            false => all.collect(),
        }
    }

    /// Chooses the columns of rows of a kind; `None`: those in force unless others are requested.
    pub fn choose(&mut self, by: By, columns: Option<Vec<&'static Column>>) {
        self.own.retain(|(kind, _)| *kind != by);
        self.own.extend(columns.map(|columns| (by, columns)));
    }
}
