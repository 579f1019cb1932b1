//! What `cachestat` shows, interval by interval.

use std::path::PathBuf;
use std::time::Duration;

use crate::columns;
use crate::columns::Column;
use crate::figures::Figure;
use crate::options::Chosen;
use crate::options::Counting;
use crate::options::Format;
use crate::pivot::By;
use crate::plan::Certainty;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::plan::Wants;
use crate::record::replay::Part;
use crate::text::numbers::Unit;

/// Which columns are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Set {
    /// The default set.
    #[default]
    Default,
    /// The wide set.
    Wide,
    /// Those of bcc, in its own layout.
    Bcc,
}

/// What `cachestat` shows.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of an interval.
    pub interval: Duration,
    /// Number of intervals; `None`: until somebody ends it.
    pub count: Option<u64>,
    /// Lines begin with the time of day.
    pub timestamp: bool,
    /// The output format.
    pub format: Format,
    /// The set of columns, where none are chosen one by one.
    pub set: Set,
    /// These columns, in this order.
    pub columns: Option<Vec<&'static Column>>,
    /// Pages as pages or as bytes.
    pub unit: Unit,
    /// Rows of these below each interval.
    pub by: Option<By>,
    /// So many of them.
    pub top: usize,
    /// Time read calls.
    pub latency: bool,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
    /// Write the samples to this file.
    pub record: Option<PathBuf>,
    /// Show what was written to this file, or in this directory.
    pub replay: Option<(PathBuf, Part)>,
    /// Write it to this directory as tables, and show nothing.
    pub export: Option<PathBuf>,
}

impl Options {
    /// The columns to show: with `--latency`, the time of calls that missed as well.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static Column> {
        let wide = self.set == Set::Wide;
        let mut columns = match &self.columns {
            Some(list) => return list.clone(),
            None if self.counting.engine == Some(Engine::Classic) => columns::of_classic(wide),
            None if self.counting.engine == Some(Engine::Both) => columns::of_both(wide),
            None if wide => columns::set(columns::WIDE),
            None if self.by == Some(By::Evictor) => columns::set(columns::EVICTORS),
            None if self.by.is_some() && self.format == Format::Text => columns::set(columns::ROWS),
            None => columns::set(columns::DEFAULT),
        };
        if self.latency {
            let after = columns.iter().position(|c| c.id == "hit_ratio").map_or(0, |i| i + 1);
            columns.splice(after..after, columns::set(&["stall_s"]));
        }
        columns
    }

    /// What has to be found out beyond the counts, which costs something at every read.
    #[must_use]
    pub fn wants(&self) -> Wants {
        if self.record.is_some() {
            // Whoever replays it may ask for all of it.
            return Wants { latency: true, around: true, files: true, ..Wants::default() };
        }
        let columns = self.columns();
        let shown = |figure| self.set != Set::Bcc && columns.iter().any(|c| c.figure() == Some(figure));
        let json = self.format == Format::Json;
        Wants {
            latency: self.latency || json || shown(Figure::StallNs),
            around: json || shown(Figure::FaultAround),
            buffers: json || shown(Figure::BufferDirtied),
            ..Wants::default()
        }
    }

    /// Columns that were asked for by name, or by `--latency`, of figures that are unknown by this plan: their titles, and why.
    #[must_use]
    pub fn untold(&self, plan: &Plan) -> Vec<(&'static str, String)> {
        if plan.engine == Engine::Classic {
            return Vec::new();
        }
        let mut named = self.columns.clone().unwrap_or_default();
        if self.latency && !named.iter().any(|c| c.figure() == Some(Figure::StallNs)) {
            named.extend(columns::set(&["stall_s"]));
        }
        // A ratio is not known where one of its parts is not.
        let why = |c: &Column| {
            c.parts().iter().find_map(|figure| match plan.certainty(*figure) {
                Certainty::Unknown(why) => Some((c.title, why)),
                Certainty::Exact | Certainty::Bounded(_) => None,
            })
        };
        named.into_iter().filter_map(why).collect()
    }
}
