//! The files of a run as a table that sorts.

use std::fmt::Write as _;

use super::table;
use super::table::Cell;
use crate::report::data::FileRow;
use crate::report::data::Residency;
use crate::report::data::Run;
use crate::report::share;
use crate::report::units::bytes;
use crate::report::units::count;
use crate::report::units::percent;

/// Rows that are shown until all are asked for; the style knows it as well.
const SHOWN: usize = 20;

/// Title, and value of a file.
type Column = (&'static str, fn(&FileRow) -> Cell);

#[allow(clippy::cast_precision_loss)]
fn number(n: u64) -> Cell {
    Cell::Number(count(n), n as f64)
}

fn known(n: Option<u64>) -> Cell {
    n.map_or(Cell::Unknown, number)
}

fn cached(r: Option<&Residency>) -> Cell {
    r.filter(|r| r.pages > 0).map_or(Cell::Unknown, |r| {
        let share = share(r.cached, r.pages);
        Cell::Number(percent(share, 0), share)
    })
}

#[allow(clippy::cast_precision_loss)]
const COLUMNS: &[Column] = &[
    ("hits", |f| number(f.hits)),
    ("read ahead", |f| number(f.readahead_hits)),
    ("misses", |f| number(f.misses)),
    ("faults", |f| number(f.fault_misses + f.fault_hits)),
    ("writes", |f| known(f.writes())),
    ("dirtied", |f| number(f.dirtied)),
    ("direct", |f| f.direct().map_or(Cell::Unknown, |n| Cell::Number(bytes(n), n as f64))),
    ("cached before", |f| cached(f.before.as_ref())),
    ("cached after", |f| cached(f.after.as_ref())),
];

pub(super) fn table(run: &Run, out: &mut String) {
    let files: Vec<_> = run.files.iter().filter(|f| f.weight() > 0).collect();
    if files.is_empty() {
        return;
    }
    out.push_str("<h3>Files</h3>\n<p class=\"about\">In pages, but for direct I/O; the busiest first.");
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
    let titles: Vec<&str> = std::iter::once("file").chain(COLUMNS.iter().map(|(title, _)| *title)).collect();
    let row = |f: &&FileRow| {
        let path = crate::text::foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode));
        let cells = COLUMNS.iter().map(|(_, value)| value(f));
        std::iter::once(Cell::Code(path)).chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = files.iter().map(row).collect();
    table::show("files", &titles, &rows, out);
}
