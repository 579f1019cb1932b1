//! The files of a run as a table that sorts.

use std::fmt::Write as _;

use super::table;
use super::table::Cell;
use crate::report::data::FileRow;
use crate::report::data::Residency;
use crate::report::data::Run;
use crate::report::units;
use crate::report::units::count;
use crate::report::units::percent;
use crate::report::units::share;
use crate::text::numbers::Unit;

/// Rows that are shown until all are asked for; the style knows it as well.
const SHOWN: usize = 20;

/// Title, and value of a file.
type Column = (&'static str, fn(&FileRow, Unit) -> Cell);

fn number(n: u64) -> Cell {
    Cell::Number(count(n), n as f64)
}

fn pages(n: u64, unit: Unit) -> Cell {
    let shown = if unit == Unit::Pages { count(n) } else { units::of_pages(n) };
    Cell::Number(shown, n as f64)
}

fn of_bytes(n: u64, unit: Unit) -> Cell {
    let shown = if unit == Unit::Pages { units::pages_of(n) } else { units::bytes(n) };
    Cell::Number(shown, n as f64)
}

fn cached(r: Option<&Residency>) -> Cell {
    r.filter(|r| r.pages > 0).map_or(Cell::Unknown, |r| {
        let share = share(r.cached, r.pages);
        Cell::Number(percent(share, 0), share)
    })
}

const COLUMNS: &[Column] = &[
    ("hits", |f, u| pages(f.hits, u)),
    ("read ahead", |f, u| pages(f.readahead_hits, u)),
    ("misses", |f, u| pages(f.misses, u)),
    ("faults", |f, _| number(f.fault_misses + f.fault_hits)),
    ("writes", |f, u| f.writes().map_or(Cell::Unknown, |n| pages(n, u))),
    ("dirtied", |f, u| pages(f.dirtied, u)),
    ("direct", |f, u| f.direct().map_or(Cell::Unknown, |n| of_bytes(n, u))),
    ("cached before", |f, _| cached(f.before.as_ref())),
    ("cached after", |f, _| cached(f.after.as_ref())),
];

pub(super) fn table(run: &Run, out: &mut String) {
    let files: Vec<_> = run.files.iter().filter(|f| f.weight() > 0).collect();
    if files.is_empty() {
        return;
    }
    let counted = if run.unit == Unit::Pages { "In pages" } else { "Whole pages, in bytes" };
    let _ = write!(out, "<h3>Files</h3>\n<p class=\"about\">{counted}; the busiest first.");
    let rest = run.files_seen.saturating_sub(files.len() as u64);
    if rest > 0 {
        let _ = write!(out, " These are {} of {} files.", count(files.len() as u64), count(run.files_seen));
    }
    out.push_str("</p>\n");
    if files.len() > SHOWN {
        let (id, all) = (format!("all-{}", run.number), files.len());
        let _ = writeln!(
            out,
            "<input type=\"checkbox\" class=\"all\" id=\"{id}\"><label for=\"{id}\">all {all}, not {SHOWN}</label>"
        );
    }
    // Of what nothing is known of any file, there is no column.
    let known = |(_, value): &&Column| files.iter().any(|f| !matches!(value(f, run.unit), Cell::Unknown));
    let columns: Vec<&Column> = COLUMNS.iter().filter(known).collect();
    let titles: Vec<&str> = std::iter::once("file").chain(columns.iter().map(|(title, _)| *title)).collect();
    let row = |f: &&FileRow| {
        let path = crate::text::foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode));
        let cells = columns.iter().map(|(_, value)| value(f, run.unit));
        std::iter::once(Cell::Code(path)).chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = files.iter().map(row).collect();
    table::show("files", &titles, &rows, out);
}
