//! The options of recordings.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use crate::cli::read;
use crate::record::replay::Part;
use crate::record::replay::When;

/// Writing down what counts, and showing it later.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
#[command(next_help_heading = "Recordings")]
pub struct Recordings {
    /// Write everything that is counted to this file, beside what is shown
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Show what was recorded in this file, or in a directory of cachetopd, as it would have been shown then
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "interval", "record", "include_self", "engine", "table_size", "explain", "refuse"
    ])]
    pub replay: Option<PathBuf>,

    /// Begin there: 14:00, '2026-11-23 14:00', 2026-11-23T14:00:00Z, '3m ago'
    #[arg(long, value_name = "WHEN", requires = "replay", value_parser = When::parse)]
    pub from: Option<When>,

    /// End there
    #[arg(long, value_name = "WHEN", requires = "replay", value_parser = When::parse)]
    pub to: Option<When>,

    /// Put intervals together to this length
    #[arg(long, value_name = "TIME", requires = "replay", value_parser = every)]
    pub every: Option<Duration>,

    /// Instead of showing it, write tables for notebooks (Parquet) to this directory: intervals, with --by rows as well
    #[arg(long, value_name = "DIR", requires = "replay", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "count", "timestamp", "extended", "columns", "unit", "json", "csv", "bcc", "latency"
    ])]
    pub export: Option<PathBuf>,
}

fn every(text: &str) -> Result<Duration, String> {
    read::time(text, "")
}

impl Recordings {
    /// Refuses what is of `--replay` without it: clap lets it pass beside what excludes that.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let of_replay = [
            ("--from", self.from.is_some()),
            ("--to", self.to.is_some()),
            ("--every", self.every.is_some()),
            ("--export", self.export.is_some()),
        ];
        match of_replay.iter().find(|(_, given)| *given && self.replay.is_none()) {
            Some((name, _)) => Err(format!("'{name}' is of '--replay': it cannot be used without")),
            None => Ok(()),
        }
    }

    /// What is to be replayed.
    #[must_use]
    pub fn replayed(&self) -> Option<(PathBuf, Part)> {
        let part = Part { from: self.from.clone(), to: self.to.clone(), every: self.every, onwards: false };
        Some((self.replay.clone()?, part))
    }
}
