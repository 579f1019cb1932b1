//! Rows as text, CSV and JSON. Columns are data: one definition for all three.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::row::Kind;
use super::row::Row;
use crate::text::foreign::Foreign;
use crate::text::numbers::Unit;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;
use crate::text::table::fitted;

mod tree;

pub(super) use tree::bar;
pub use tree::tree;

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// It cannot be known.
    Unknown,
    /// There is nothing to know.
    Empty,
    /// Pages; at least so many where it says so.
    Pages(u64, bool),
    /// Pages; at most so many, since some may be counted twice.
    AtMost(u64),
    /// Bytes; at least so many where it says so.
    Bytes(u64, bool),
    /// Pages, of those files that could be asked for them, where others could be asked for less.
    AtLeast(u64),
    /// Pieces; at least so many where it says so.
    Count(u64, bool),
    /// A part of the whole.
    Ratio(f64),
}

/// A column.
pub struct Column {
    /// Its name in CSV.
    pub id: &'static str,
    /// Its title in text.
    pub title: &'static str,
    /// What stands in it.
    pub cell: fn(&Row) -> Cell,
}

fn known(pages: Option<u64>, row: &Row) -> Cell {
    pages.map_or(Cell::Unknown, |n| Cell::Pages(n, row.totals.partial()))
}

/// A sum in which pages may be counted twice is at most that, unless others are missing in it.
fn cached(row: &Row) -> Cell {
    match known(row.totals.cached(), row) {
        Cell::Pages(n, false) if row.kind != Kind::File && row.totals.perhaps_shared > 0 => Cell::AtMost(n),
        cell => cell,
    }
}

fn by_cachestat(row: &Row, figure: u64) -> Cell {
    let least = row.totals.least_by_cachestat(figure);
    match least {
        Some((n, true)) => Cell::AtLeast(n),
        least => known(least.map(|(n, _)| n), row),
    }
}

/// What is not there, or is no file, has no size; what cannot be read is missing in sums of them.
fn sized(row: &Row, figure: u64, cell: fn(u64, bool) -> Cell) -> Cell {
    row.totals.sized(figure).map_or(Cell::Unknown, |n| cell(n, row.totals.partly_sized()))
}

/// Nobody is requested processes unless they are what files are found by; a sum of them would count some twice.
fn processes(row: &Row) -> Cell {
    if row.processes.is_empty() { Cell::Empty } else { Cell::Count(row.processes.len() as u64, false) }
}

/// A file is one.
fn files(row: &Row) -> Cell {
    if row.kind == Kind::File { Cell::Empty } else { Cell::Count(row.totals.files, row.totals.unread > 0) }
}

/// All columns.
pub const COLUMNS: &[Column] = &[
    Column { id: "size_bytes", title: "SIZE", cell: |r| sized(r, r.totals.size, Cell::Bytes) },
    Column { id: "disk_bytes", title: "DISK", cell: |r| sized(r, r.totals.disk, Cell::Bytes) },
    Column { id: "pages", title: "PAGES", cell: |r| sized(r, r.totals.pages, Cell::Pages) },
    Column { id: "cached", title: "CACHED", cell: cached },
    Column {
        id: "cached_ratio",
        title: "PERCENT",
        cell: |r| r.totals.ratio().map_or(Cell::Unknown, Cell::Ratio),
    },
    Column { id: "dirty", title: "DIRTY", cell: |r| by_cachestat(r, r.totals.dirty) },
    Column { id: "writeback", title: "WBACK", cell: |r| by_cachestat(r, r.totals.writeback) },
    Column { id: "evicted", title: "EVICTED", cell: |r| by_cachestat(r, r.totals.evicted) },
    Column { id: "recently_evicted", title: "RECENT", cell: |r| by_cachestat(r, r.totals.recently_evicted) },
    Column { id: "processes", title: "PROCS", cell: processes },
    Column { id: "files", title: "FILES", cell: files },
];

/// What is requested of a table, whatever is in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape<'a> {
    /// The columns, by their names in CSV; none: those that the layout has.
    pub columns: &'a [String],
    /// No line with titles.
    pub no_header: bool,
    /// Pages as pages or as bytes; `None`: as the layout has it.
    pub unit: Option<Unit>,
    /// The column that rows are sorted by on request, which people look for.
    pub sorted: Option<&'static str>,
}

impl Shape<'_> {
    /// The columns, those of `ids` where none were requested.
    fn columns(&self, ids: &[&str]) -> Vec<&'static Column> {
        let by_id = |id: &str| COLUMNS.iter().find(|c| c.id == id);
        if self.columns.is_empty() {
            return ids.iter().filter_map(|id| by_id(id)).collect();
        }
        self.columns.iter().filter_map(|id| by_id(id)).collect()
    }

    /// The same for people: with what the rows are sorted by.
    fn told(&self, ids: &[&'static str]) -> Vec<&'static Column> {
        let more = self.sorted.filter(|id| !ids.contains(id));
        self.columns(&ids.iter().copied().chain(more).collect::<Vec<_>>())
    }

    /// A table of lines, the first of which has the titles.
    fn table(&self, lines: &[Vec<String>], names: &[String]) -> String {
        let text = fitted(lines, names);
        if !self.no_header {
            return text;
        }
        text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned())
    }
}

/// Which columns text shows, and how it writes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// pcstat's columns and what cachestat(2) adds, in pages.
    Files,
    /// du's: sizes for people.
    Tree,
    /// Files with the processes that have them.
    Owned,
}

impl Layout {
    const fn ids(self) -> &'static [&'static str] {
        match self {
            Layout::Files => &[
                "size_bytes",
                "pages",
                "cached",
                "cached_ratio",
                "dirty",
                "writeback",
                "evicted",
                "recently_evicted",
            ],
            // PERCENT is of SIZE: beside DISK alone, a sparse file that is cached as far as it has data has '0.01%'.
            Layout::Tree => {
                &["size_bytes", "disk_bytes", "cached", "cached_ratio", "dirty", "evicted", "files"]
            }
            Layout::Owned => &["size_bytes", "pages", "cached", "cached_ratio", "dirty", "processes"],
        }
    }

    /// The unit of pages where none was requested.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Layout::Tree => Unit::Bytes,
            Layout::Files | Layout::Owned => Unit::Pages,
        }
    }
}

fn shown(cell: Cell, layout: Layout, unit: Unit) -> String {
    let page = rustix::param::page_size() as u64;
    let least = |text: String, least: bool| if least { text + "+" } else { text };
    match cell {
        Cell::Unknown => "-".into(),
        Cell::Empty => String::new(),
        Cell::AtLeast(n) => shown(Cell::Pages(n, true), layout, unit),
        Cell::AtMost(n) => format!("≤{}", shown(Cell::Pages(n, false), layout, unit)),
        Cell::Pages(n, more) if unit == Unit::Bytes => least(bytes(n.saturating_mul(page)), more),
        Cell::Bytes(n, more) if layout == Layout::Tree || unit == Unit::Bytes => least(bytes(n), more),
        Cell::Pages(n, more) | Cell::Bytes(n, more) => least(n.to_string(), more),
        Cell::Count(n, more) => least(n.to_string(), more),
        Cell::Ratio(x) => percent(x),
    }
}

/// A path for people: nothing that could move the cursor.
#[must_use]
pub fn name(path: &Path) -> String {
    Foreign::from(path).to_string()
}

/// What stands behind the name of what may be counted under another one as well.
fn also(row: &Row) -> &'static str {
    if row.totals.perhaps_shared > 0 { "  (perhaps also counted under other overlay mounts)" } else { "" }
}

/// A table: titles, rows, and the name at the end of each line, where it may be long.
#[must_use]
pub fn text(rows: &[Row], layout: Layout, shape: &Shape<'_>) -> String {
    let unit = shape.unit.unwrap_or(layout.unit());
    let columns = shape.told(layout.ids());
    let mut lines = vec![columns.iter().map(|c| c.title.to_string()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|r| columns.iter().map(|c| shown((c.cell)(r), layout, unit)).collect()));
    let mut names = vec!["NAME".to_string()];
    names.extend(rows.iter().map(|r| match (r.kind, r.why) {
        (Kind::Total, _) => "total".into(),
        (_, Some(why)) => format!("{}  ({why})", name(&r.path)),
        (Kind::Directory, None) if !r.path.as_os_str().as_bytes().ends_with(b"/") => {
            format!("{}/{}", name(&r.path), also(r))
        }
        _ => format!("{}{}", name(&r.path), also(r)),
    }));
    shape.table(&lines, &names)
}

/// What stands in each line of CSV behind the columns that were requested: figures may be at least what they say.
const ALWAYS: [&str; 2] = ["partial", "reason"];
/// The same behind all columns.
const BEHIND: [&str; 4] = ["unknown_files", "partial", "unread", "reason"];

/// Bytes of a line of CSV, usually.
const LINE: usize = 256;

/// The first line of CSV, with names.
///
/// # Errors
/// None that memory does not give.
pub fn csv_names(shape: &Shape<'_>) -> anyhow::Result<Vec<u8>> {
    if shape.no_header {
        return Ok(Vec::new());
    }
    let mut out = csv::Writer::from_writer(Vec::new());
    let behind: &[&str] = if shape.columns.is_empty() { &BEHIND } else { &ALWAYS };
    let ids = shape.columns(&ALL).into_iter().map(|c| c.id);
    out.write_record(["type"].into_iter().chain(ids).chain(behind.iter().copied()).chain(["path"]))?;
    Ok(out.into_inner()?)
}

/// The names of all columns.
static ALL: [&str; COLUMNS.len()] = {
    let mut all = [""; COLUMNS.len()];
    let mut i = 0;
    while i < COLUMNS.len() {
        all[i] = COLUMNS[i].id;
        i += 1;
    }
    all
};

/// CSV: a line for each row, behind other text. Pages and bytes as numbers, unknown empty.
///
/// # Errors
/// None that memory does not give.
pub fn csv(rows: &[Row], shape: &Shape<'_>, to: &mut Vec<u8>) -> anyhow::Result<()> {
    // A line is made for each row of a million: more room for it than it needs takes longer than all that is written.
    let mut out = csv::WriterBuilder::new().buffer_capacity(LINE).from_writer(to);
    let columns = shape.columns(&ALL);
    let behind: &[&str] = if shape.columns.is_empty() { &BEHIND } else { &ALWAYS };
    for row in rows {
        out.write_field(row.kind.name())?;
        for column in &columns {
            out.write_field(match (column.cell)(row) {
                _ if column.id == "files" => row.totals.files.to_string(),
                // A bound without a mark would be taken for the whole.
                Cell::Unknown | Cell::Empty | Cell::AtLeast(_) => String::new(),
                Cell::Pages(n, _) | Cell::AtMost(n) | Cell::Bytes(n, _) | Cell::Count(n, _) => n.to_string(),
                // Not rounded: one page of many is not nothing, and all but one are not all.
                Cell::Ratio(x) => x.to_string(),
            })?;
        }
        for id in behind {
            out.write_field(match *id {
                "unknown_files" => row.totals.unknown.to_string(),
                "partial" => row.totals.incomplete().to_string(),
                "unread" => row.totals.unread.to_string(),
                _ => row.why.map_or("", super::Unknown::id).to_owned(),
            })?;
        }
        out.write_field(Foreign::from(row.path.as_path()).cell())?;
        out.write_record(None::<&[u8]>)?;
    }
    Ok(out.flush()?)
}

/// Puts a path into an object: as text, and byte for byte where it is no UTF-8.
pub fn put_path(object: &mut Map<String, Value>, path: &Path) {
    object.insert("path".into(), path.to_string_lossy().into());
    if path.to_str().is_none() {
        let hex = path.as_os_str().as_bytes().iter().fold(String::new(), |mut hex, b| {
            let _ = write!(hex, "{b:02x}");
            hex
        });
        object.insert("path_hex".into(), hex.into());
    }
}

/// One row as JSON.
#[must_use]
pub fn json(row: &Row) -> Value {
    let t = &row.totals;
    let page = rustix::param::page_size() as u64;
    let mut object = Map::new();
    object.insert("type".into(), row.kind.name().into());
    if row.kind != Kind::Total {
        put_path(&mut object, &row.path);
    }
    let method = match (t.by_mincore, t.cached()) {
        (_, None) => None,
        (0, _) => Some("cachestat"),
        (n, _) if n == t.files - t.unknown - t.empty => Some("mincore"),
        _ => Some("both"),
    };
    // Of files of no size nobody was asked.
    let method = method.filter(|_| t.pages > t.unknown_pages);
    let sized = |figure: u64| t.sized(figure);
    for (key, value) in [
        ("size_bytes", json!(sized(t.size))),
        ("disk_bytes", json!(sized(t.disk))),
        ("pages", json!(sized(t.pages))),
        ("cached", json!(t.cached())),
        ("cached_bytes", json!(t.cached().map(|n| n * page))),
        ("cached_ratio", json!(t.ratio())),
        ("dirty", json!(t.only_cachestat(t.dirty))),
        // What cachestat(2) counts: a byte makes all of a large folio dirty.
        ("dirty_folio_pages", json!(t.only_cachestat(t.dirty))),
        ("writeback", json!(t.only_cachestat(t.writeback))),
        ("evicted", json!(t.only_cachestat(t.evicted))),
        ("recently_evicted", json!(t.only_cachestat(t.recently_evicted))),
        ("method", json!(method)),
    ] {
        object.insert(key.into(), value);
    }
    if row.kind == Kind::File {
        object.insert("reason".into(), json!(row.why.map(super::Unknown::id)));
        if !row.processes.is_empty() {
            object.insert("processes".into(), json!(row.processes));
        }
    } else {
        for (key, value) in [
            ("partial", json!(t.incomplete())),
            ("files", json!(t.files)),
            ("directories", json!(t.dirs)),
            ("others", json!(t.others)),
            ("perhaps_shared_files", json!(t.perhaps_shared)),
            ("dirty_at_least", json!(t.least_by_cachestat(t.dirty).map(|(n, _)| n))),
            ("unknown_files", json!(t.unknown)),
            ("unknown_pages", json!(t.unknown_pages)),
            ("unread", json!(t.unread)),
            ("vanished", json!(t.vanished)),
        ] {
            object.insert(key.into(), value);
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests;
