//! The busiest files of a run.

use super::page::Page;
use super::page::Row;
use crate::report::data::FileRow;
use crate::report::data::Residency;
use crate::report::data::Run;
use crate::report::units::count;
use crate::report::units::percent;
use crate::text::foreign;
use crate::text::width::ending;

/// Files that are shown.
const FILES: usize = 8;

/// What is said of a file.
enum Cell {
    Pages(u64),
    Count(u64),
    Bytes(u64),
    Part(f64),
    Unknown,
    /// There is nothing that could be known.
    Nothing,
}

struct Column {
    title: &'static str,
    of: fn(&FileRow) -> Cell,
}

fn or_unknown(n: Option<u64>, cell: fn(u64) -> Cell) -> Cell {
    n.map_or(Cell::Unknown, cell)
}

fn part(r: Option<&Residency>) -> Cell {
    match r {
        // A file without pages is not cached in any part.
        Some(r) if r.pages == 0 => Cell::Nothing,
        Some(r) => Cell::Part(crate::report::units::share(r.cached, r.pages)),
        None => Cell::Unknown,
    }
}

const COLUMNS: &[Column] = &[
    Column { title: "HITS", of: |f| Cell::Pages(f.hits) },
    Column { title: "RAHITS", of: |f| Cell::Pages(f.readahead_hits) },
    Column { title: "MISSES", of: |f| Cell::Pages(f.misses) },
    Column { title: "FAULTS", of: |f| Cell::Count(f.fault_misses + f.fault_hits) },
    Column { title: "WRITES", of: |f| or_unknown(f.writes(), Cell::Pages) },
    Column { title: "DIRTIES", of: |f| Cell::Pages(f.dirtied) },
    Column { title: "DIRECT", of: |f| or_unknown(f.direct(), Cell::Bytes) },
    Column { title: "BEFORE", of: |f| part(f.before.as_ref()) },
    Column { title: "AFTER", of: |f| part(f.after.as_ref()) },
];

fn show(cell: &Cell, page: &Page) -> String {
    match cell {
        Cell::Pages(n) => page.pages(*n),
        Cell::Count(n) => count(*n),
        Cell::Bytes(n) => page.bytes(*n),
        Cell::Part(x) => percent(*x, 0),
        Cell::Unknown => "-".into(),
        Cell::Nothing => String::new(),
    }
}

/// The busiest files; columns of which nothing is known, or which are 0 for all, are left out.
pub(super) fn files(run: &Run, page: &mut Page) {
    let shown: Vec<&FileRow> = run.files.iter().filter(|f| f.weight() > 0).take(FILES).collect();
    if shown.is_empty() {
        return;
    }
    let mut heads = Vec::new();
    let mut rows: Vec<Vec<String>> = vec![Vec::new(); shown.len()];
    for column in COLUMNS {
        let cells: Vec<Cell> = shown.iter().map(|f| (column.of)(f)).collect();
        let says = |cell: &Cell| match cell {
            Cell::Pages(n) | Cell::Count(n) | Cell::Bytes(n) => *n > 0,
            Cell::Part(_) => true,
            Cell::Unknown | Cell::Nothing => false,
        };
        if cells.iter().any(says) {
            heads.push(column.title.to_owned());
            rows.iter_mut().zip(&cells).for_each(|(row, cell)| row.push(show(cell, page)));
        }
    }
    let names: Vec<String> = shown
        .iter()
        .map(|f| foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode)))
        .collect();
    page.gap();
    named("files", heads, rows, &names, page);
    let rest = run.files_seen.saturating_sub(FILES as u64);
    if rest > 0 {
        page.line(&format!("  and {} more", count(rest)));
    }
}

/// A table of files: a row of figures for each, with its name beside it where there is room, and else below.
pub(super) fn named(
    title: &str,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    names: &[String],
    page: &mut Page,
) {
    let widths = heads.iter().enumerate().map(|(i, head)| {
        rows.iter().map(|row| row[i].chars().count()).chain([head.len()]).max().unwrap_or(0) + 2
    });
    let used: usize = title.len() + widths.sum::<usize>();
    let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let beside = used + 2 + longest <= page.style.width;
    let mut table = vec![Row::new(title, heads)];
    table.extend(rows.into_iter().map(|cells| Row::new("", cells)));
    if beside {
        table.iter_mut().skip(1).zip(names).for_each(|(row, name)| row.about.clone_from(name));
        page.table(&table);
    } else {
        // Below its figures, a path has the width of the page.
        let mut plain = page.blank();
        plain.table(&table);
        let mut lines = plain.out.lines();
        page.row(lines.next().unwrap_or_default());
        for (line, name) in lines.zip(names) {
            page.row(line);
            page.line(&format!("  {}", ending(name, page.style.width - 2)));
        }
    }
}
