//! `--replay FILE --export DIR`: a recording as tables for notebooks, in files of Parquet.
//!
//! `intervals.parquet` has a line for each interval, `rows.parquet` one for each of its rows (with `--by`), `histograms.parquet`
//! one for each bucket that has something in it (where times were recorded). They are joined by `interval`. A table appears
//! whole or not at all.

mod cells;
mod file;
mod table;

use std::io;
use std::path::Path;

use crate::exit::Failure;
use crate::live::Live;
use crate::pivot::Pivot;
use crate::sample::Source;
use crate::text::foreign::Foreign;
use crate::text::words;
use crate::wait::Wait;
use crate::wait::Wake;

use file::New;
use table::Table;

/// What the tables are; it stands in each of them.
const SCHEMA: &str = "cachestat-tables-1";

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Intervals.
    pub intervals: u64,
    /// Their rows; `None`: none were requested.
    pub rows: Option<u64>,
}

/// Files that will be there at the end.
pub struct Export {
    intervals: New,
    rows: Option<New>,
    histograms: Option<New>,
}

impl Export {
    /// Finds out whether the tables can be written to this directory, which is made if it is not there.
    ///
    /// # Errors
    /// When they cannot, or something else has one of their names (2).
    pub fn new(directory: &Path, rows: bool, histograms: bool) -> Result<Self, Failure> {
        file::directory(directory)?;
        let new = |name: &str, wanted: bool| wanted.then(|| New::make(directory, name)).transpose();
        Ok(Self {
            intervals: New::make(directory, "intervals.parquet")?,
            rows: new("rows.parquet", rows)?,
            histograms: new("histograms.parquet", histograms)?,
        })
    }

    /// Writes all intervals of a source.
    ///
    /// # Errors
    /// When a sample cannot be read, or a table cannot be written. Then none of them is there.
    pub fn write(
        self,
        source: &mut dyn Source,
        wait: &mut dyn Wait,
        pivot: &mut Pivot,
    ) -> anyhow::Result<Written> {
        let mut intervals = Table::new(self.intervals.file()?, &cells::interval_columns())?;
        let table = |new: &Option<New>, columns: fn() -> cells::Columns| {
            new.as_ref().map(|n| anyhow::Ok(Table::new(n.file()?, &columns())?)).transpose()
        };
        let mut rows = table(&self.rows, cells::row_columns)?;
        let mut histograms = table(&self.histograms, cells::histogram_columns)?;
        let mut live = Live::new(source)?;
        for number in 1.. {
            let wake = wait.until(wait.now())?;
            if wake == Wake::Over {
                break;
            }
            live.tick()?;
            let interval = live.interval(pivot);
            intervals.push(cells::interval_cells(number, &interval))?;
            if let Some(rows) = &mut rows {
                for row in &interval.rows {
                    rows.push(cells::row_cells(number, &interval, row))?;
                }
            }
            if let Some(histograms) = &mut histograms {
                for line in cells::histogram_cells(number, &interval) {
                    histograms.push(line)?;
                }
            }
            if wake != Wake::Deadline {
                break;
            }
        }
        let written = Written { intervals: intervals.rows, rows: rows.as_ref().map(|t| t.rows) };
        // All of them are on the disk before the first has its name.
        let mut done = vec![(self.intervals, intervals.close()?)];
        for (new, table) in [(self.rows, rows), (self.histograms, histograms)] {
            if let Some((new, table)) = new.zip(table) {
                done.push((new, table.close()?));
            }
        }
        done.iter().try_for_each(|(_, file)| file::settle(file))?;
        done.into_iter().try_for_each(|(new, file)| new.name(&file))?;
        Ok(written)
    }
}

/// What to say at the end.
pub(super) fn said(written: Written, directory: &Path) -> String {
    let intervals = words::many(written.intervals, "interval", "intervals");
    let rows = written.rows.map_or_else(String::new, |n| format!(" and {}", words::many(n, "row", "rows")));
    format!("{intervals}{rows} written to {}", Foreign::from(directory))
}

/// A failure of the program, with what can be done about it.
pub(super) fn failed(directory: &Path, error: &anyhow::Error) -> Failure {
    let cause = error.chain().find_map(|e| e.downcast_ref::<io::Error>()).and_then(io::Error::raw_os_error);
    let failure = Failure::failed(format!("cannot write tables to {}: {error:#}", Foreign::from(directory)));
    match cause {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            failure.remedy("make room there, or name a directory on another disk")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests;
