//! What `cachetop` is to do: plain values, whoever chose them.

use std::path::PathBuf;
use std::time::Duration;

use crate::columns::Column;
use crate::options::Chosen;
use crate::options::Counting;
use crate::options::OneOf;
use crate::pivot::By;
use crate::record::replay::When;
use crate::text::numbers::Unit;
use crate::top::settings::Settings;
use crate::top::settings::Show;
use crate::top::settings::Sort;

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Color {
    /// Where the terminal has them and NO_COLOR is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl OneOf for Color {
    const ALL: &'static [Self] = &[Color::Auto, Color::Always, Color::Never];

    fn name(self) -> &'static str {
        match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        }
    }
}

/// What it writes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// A screen.
    #[default]
    Screen,
    /// Text, interval by interval.
    Text,
    /// JSON lines.
    Json,
}

/// Where settings are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Config {
    /// Where they are unless somebody says otherwise.
    #[default]
    Usual,
    /// In this file.
    File(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// What is chosen for this time, over the settings that are kept.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Length of an interval.
    pub interval: Option<Duration>,
    /// What rows stand for.
    pub by: Option<By>,
    /// Columns with figures, in order.
    pub columns: Option<Vec<&'static Column>>,
    /// What rows are sorted by.
    pub sort: Option<Sort>,
    /// The other way round.
    pub reverse: bool,
    /// Pages or bytes.
    pub unit: Option<Unit>,
    /// Counts, rates or totals.
    pub show: Option<Show>,
    /// Threads below their processes.
    pub threads: bool,
    /// The mouse is left to the terminal.
    pub no_mouse: bool,
}

impl Changes {
    /// Puts what was chosen over the settings.
    pub fn apply(&self, settings: &mut Settings) {
        let s = settings;
        s.interval = self.interval.unwrap_or(s.interval);
        s.by = self.by.unwrap_or(s.by);
        s.unit = self.unit.unwrap_or(s.unit);
        s.show = self.show.unwrap_or(s.show);
        s.threads |= self.threads;
        s.mouse &= !self.no_mouse;
        if let Some(columns) = &self.columns {
            s.columns.clone_from(columns);
            s.columns_are_default = false;
            s.own.clear();
        }
        if let Some(sort) = self.sort {
            (s.sort, s.reverse) = (sort, false);
        }
        s.reverse ^= self.reverse;
    }
}

/// What `cachetop` is to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What it writes to.
    pub output: Output,
    /// End after so many intervals.
    pub iterations: Option<u64>,
    /// How the view differs from the settings that are kept.
    pub changes: Changes,
    /// Number of rows in text and JSON; `None`: all.
    pub top: Option<u32>,
    /// Files are not counted.
    pub no_files: bool,
    /// Time read calls.
    pub latency: bool,
    /// Where settings are kept.
    pub config: Config,
    /// When to use colours.
    pub color: Color,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
    /// Nothing is counted: this was recorded, and it begins there.
    pub replay: Option<(PathBuf, Option<When>)>,
}
