//! Several runs side by side, beyond where their time went.

use super::page::Page;
use super::page::Row;
use crate::figures::Figure;
use crate::report::Report;
use crate::report::compare;
use crate::report::compare::Cell;
use crate::report::compare::Difference;
use crate::report::data::Run;
use crate::report::units;

/// Runs that are shown in columns of their own.
const COLUMNS: usize = 5;

/// Lines of the comparison that [`reads`] has shown.
const READS: &[&str] = &["read", "hits", "read-ahead hits", "misses", "from devices"];

/// The first few of what stands beside each other.
fn columns(report: &Report) -> Vec<(String, &Run)> {
    let mut columns = super::groups::columns(report);
    columns.truncate(COLUMNS);
    columns
}

fn show(cell: Option<Cell>, page: &Page) -> String {
    match cell {
        None => "-".into(),
        Some(Cell::Seconds(x)) => format!("{x:.3} s"),
        Some(Cell::Count(n)) => units::count(n),
        Some(Cell::Pages(n)) => page.pages(n),
        Some(Cell::Bytes(n)) => page.bytes(n),
    }
}

/// What was read of files, in a few rows: nothing of what no run had.
pub(super) fn reads(report: &Report, page: &mut Page) {
    let columns = columns(report);
    let parts = [
        ("  hits", Figure::Hits),
        ("  first use of read-ahead", Figure::ReadAheadHits),
        ("  misses", Figure::Misses),
    ];
    let of = |run: &Run| parts.map(|(_, figure)| run.get(figure)).into_iter().collect::<Option<Vec<u64>>>();
    let known: Vec<Option<Vec<u64>>> = columns.iter().map(|(_, run)| of(run)).collect();
    if known.iter().all(Option::is_none) {
        page.note_unknown("reads");
        return;
    }
    let sums: Vec<Option<Vec<String>>> = known.iter().map(|n| n.as_ref().map(|n| page.sum(n))).collect();
    let cells = |i: usize| {
        let cell = |s: &Option<Vec<String>>| s.as_ref().map_or("-".into(), |s| s[i].clone());
        sums.iter().map(cell).collect::<Vec<String>>()
    };
    let mut table = vec![Row::new("read, in whole pages", cells(parts.len()))];
    for (i, (name, _)) in parts.iter().enumerate() {
        if page.style.verbose || known.iter().flatten().any(|n| n[i] > 0) {
            table.push(Row::new(*name, cells(i)));
        }
    }
    let devices: Vec<_> = columns.iter().map(|(_, r)| r.usage.device_read_bytes).collect();
    if devices.iter().any(|n| n.is_none_or(|n| n > 0)) && devices.iter().any(Option::is_some) {
        let cells = devices.iter().map(|n| n.map_or_else(|| "-".into(), |n| page.bytes(n))).collect();
        table.push(Row::new("read from devices", cells));
    }
    page.table(&table);
}

/// Everything else of which a run is known to have something.
pub(super) fn all(report: &Report, page: &mut Page) {
    let columns = columns(report);
    let heads = columns.iter().map(|(name, _)| name.clone()).collect();
    let mut table = vec![Row::new("runs", heads)];
    for line in compare::LINES {
        let cells: Vec<Option<Cell>> = columns.iter().map(|(_, run)| line.cell(run)).collect();
        // Where the time went and what was read is told above.
        if READS.contains(&line.name) {
            continue;
        }
        let told = matches!(cells.iter().flatten().next(), None | Some(Cell::Seconds(_)));
        if !told || matches!(line.name, "user" | "system") && cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| show(cell, page)).collect();
            table.push(Row::new(format!("  {}", line.name), cells));
        }
    }
    page.table(&table);
    let more = super::groups::columns(report).len().saturating_sub(COLUMNS);
    if more > 0 {
        page.line(&format!("  and {more} more: --json has them all"));
    }
    // Of two runs, the change stands beside them.
    if columns.len() != 2 {
        for d in &report.differences {
            difference(d, page);
        }
    }
}

fn difference(d: &Difference, page: &mut Page) {
    let (wall, rows) = d.told();
    page.line(&format!("\n{}: {wall} of wall time", d.title));
    let table: Vec<Row> =
        rows.into_iter().map(|row| Row::new(format!("  {}", row.name), row.cells)).collect();
    page.table(&table);
    for note in &d.notes {
        page.wrapped("  ", note);
    }
}
