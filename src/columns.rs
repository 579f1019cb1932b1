//! Columns as data: what can be shown, under which name, how wide, and how it is read.
//!
//! Text, CSV and the live view share [`COLUMNS`], so that a figure has one definition everywhere.

mod classic;

use crate::cgroup::Held;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::Unit;
use crate::model::Interval;
use crate::model::Row;
use crate::sample::Lost;
use crate::sample::Memory;

/// What a column shows for one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// This kernel cannot tell, or there is nothing to take a ratio of, or a row has no such thing.
    Unknown,
    /// Pages of the machine's page size.
    Pages(u64),
    /// Pages, but a difference that may be below zero.
    SignedPages(i64),
    /// A number of events.
    Events(u64),
    /// Bytes that went by.
    Bytes(u64),
    /// A size in bytes at the end of the interval.
    Size(u64),
    /// A fraction from 0 to 1.
    Ratio(f64),
    /// Seconds.
    Seconds(f64),
}

impl Value {
    /// The key to sort lines by; what is unknown sorts below everything known.
    #[must_use]
    pub fn sort_key(self) -> f64 {
        match self {
            Value::Unknown => f64::NEG_INFINITY,
            Value::Pages(n) | Value::Events(n) | Value::Bytes(n) | Value::Size(n) => n as f64,
            Value::SignedPages(n) => n as f64,
            Value::Ratio(x) | Value::Seconds(x) => x,
        }
    }
}

/// What a line of output is made of: the whole of an interval, or one row of it.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The figures of the line.
    pub figures: &'a Figures,
    /// Those of the classic engine, where it runs.
    pub classic: Option<&'a crate::classic::Figures>,
    /// Pages that came back after they had been pushed out.
    pub back: Option<u64>,
    /// What a cgroup holds of the cache, of a row that is one.
    pub held: Option<Held>,
    /// What only the system as a whole has; `None` for a row.
    pub system: Option<System<'a>>,
}

/// What belongs to the system and not to a process.
#[derive(Debug, Clone, Copy)]
pub struct System<'a> {
    /// State of the cache.
    pub memory: &'a Memory,
    /// Losses.
    pub lost: &'a Lost,
    /// Length of the interval.
    pub seconds: f64,
}

impl<'a> From<&'a Interval> for Line<'a> {
    fn from(i: &'a Interval) -> Self {
        let system = System { memory: &i.memory, lost: &i.lost, seconds: i.seconds };
        Self {
            figures: &i.total,
            classic: i.classic.as_ref(),
            back: i.back,
            held: None,
            system: Some(system),
        }
    }
}

impl<'a> From<&'a Row> for Line<'a> {
    fn from(row: &'a Row) -> Self {
        let held = row.who.held;
        Self { figures: &row.figures, classic: row.classic.as_ref(), back: row.back, held, system: None }
    }
}

/// Where the value of a column comes from.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// A figure.
    Figure(Figure),
    /// Anything else, and its line of help.
    Other(fn(&Line<'_>) -> Value, &'static str),
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name in `--columns` and in CSV.
    pub id: &'static str,
    /// Its title in text.
    pub title: &'static str,
    /// The width it is given in text; a longer value borrows from the blanks that follow.
    pub width: usize,
    /// Where its value comes from.
    pub from: Origin,
}

impl Column {
    /// The value for one line.
    #[must_use]
    pub fn value(&self, line: &Line<'_>) -> Value {
        match self.from {
            Origin::Other(value, _) => value(line),
            Origin::Figure(figure) => match (line.figures.get(figure), figure.unit()) {
                (None, _) => Value::Unknown,
                (Some(n), Unit::Pages) => Value::Pages(n),
                (Some(n), Unit::Bytes) => Value::Bytes(n),
                (Some(n), Unit::Nanoseconds) => Value::Seconds(n as f64 / 1e9),
                (Some(n), _) => Value::Events(n),
            },
        }
    }

    /// The figures that it is made of: it is not known where one of them is not.
    #[must_use]
    pub fn parts(&self) -> &'static [Figure] {
        match (self.figure(), self.id) {
            (Some(figure), _) => std::slice::from_ref(&Figure::ALL[figure as usize]),
            (None, "hit_ratio") => &[Figure::Hits, Figure::Accesses],
            (None, "write_hit_ratio") => &[Figure::WriteHits, Figure::WriteAccesses],
            (None, "direct_bytes") => &[Figure::DirectReadBytes, Figure::DirectWriteBytes],
            (None, "out") => &[Figure::Evicted, Figure::Removed],
            (None, _) => &[],
        }
    }

    /// Whether it belongs to the classic engine.
    #[must_use]
    pub fn is_classic(&self) -> bool {
        self.id.starts_with("classic_")
    }

    /// Whether it belongs to the classic engine and is a number of pages.
    #[must_use]
    pub fn counts_pages(&self) -> bool {
        self.is_classic() && !matches!(self.id, "classic_hit_ratio" | "classic_buffers")
    }

    /// Whether it is a state of cgroups, which is asked of the rows that are shown and of no others.
    #[must_use]
    pub fn of_cgroups(&self) -> bool {
        matches!(self.id, "held_bytes" | "limit_bytes")
    }

    /// The figure that is shown, if it is one.
    #[must_use]
    pub const fn figure(&self) -> Option<Figure> {
        match self.from {
            Origin::Figure(figure) => Some(figure),
            Origin::Other(..) => None,
        }
    }

    /// One line that says what is shown.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        match self.from {
            Origin::Figure(figure) => figure.about(),
            Origin::Other(_, about) => about,
        }
    }
}

/// The column of a figure. Eight characters hold what is usual; a longer number borrows from the blanks that follow.
const fn figure(figure: Figure) -> Column {
    let (id, title) = figure.column();
    Column { id, title, width: 8, from: Origin::Figure(figure) }
}

const fn other(
    id: &'static str,
    title: &'static str,
    width: usize,
    value: fn(&Line<'_>) -> Value,
    about: &'static str,
) -> Column {
    Column { id, title, width, from: Origin::Other(value, about) }
}

fn memory(line: &Line<'_>, field: fn(&Memory) -> u64) -> Value {
    line.system.map_or(Value::Unknown, |s| Value::Size(field(s.memory)))
}

fn ratio(line: &Line<'_>) -> Value {
    line.figures.hit_ratio().map_or(Value::Unknown, Value::Ratio)
}

fn write_ratio(line: &Line<'_>) -> Value {
    let figures = line.figures;
    match (figures.get(Figure::WriteHits), figures.get(Figure::WriteAccesses)) {
        (Some(hits), Some(accesses)) if accesses > 0 => Value::Ratio(hits as f64 / accesses as f64),
        _ => Value::Unknown,
    }
}

fn direct(line: &Line<'_>) -> Value {
    let (read, written) =
        (line.figures.get(Figure::DirectReadBytes), line.figures.get(Figure::DirectWriteBytes));
    read.zip(written).and_then(|(r, w)| r.checked_add(w)).map_or(Value::Unknown, Value::Bytes)
}

fn buffers(line: &Line<'_>) -> Value {
    memory(line, |m| m.buffers_bytes)
}

fn cached(line: &Line<'_>) -> Value {
    memory(line, |m| m.cached_bytes)
}

fn dirty(line: &Line<'_>) -> Value {
    memory(line, |m| m.dirty_bytes)
}

fn lost(line: &Line<'_>) -> Value {
    line.system.map_or(Value::Unknown, |s| Value::Events(s.lost.total()))
}

fn out(line: &Line<'_>) -> Value {
    let both = line.figures.get(Figure::Evicted).zip(line.figures.get(Figure::Removed));
    both.and_then(|(evicted, removed)| evicted.checked_add(removed)).map_or(Value::Unknown, Value::Pages)
}

fn back(line: &Line<'_>) -> Value {
    line.back.map_or(Value::Unknown, Value::Pages)
}

fn held(line: &Line<'_>) -> Value {
    line.held.and_then(|held| held.file).map_or(Value::Unknown, Value::Size)
}

fn limit(line: &Line<'_>) -> Value {
    line.held.and_then(|held| held.limit).map_or(Value::Unknown, Value::Size)
}

fn seconds(line: &Line<'_>) -> Value {
    line.system.map_or(Value::Unknown, |s| Value::Seconds(s.seconds))
}

/// What stands before the column of a figure: columns that are no figures, and figures whose place is not the one that
/// they have in [`Figure::ALL`].
const BEFORE: &[(Figure, Column)] = &[
    (Figure::Accesses, other("interval_s", "SECONDS", 8, seconds, "true length of the interval")),
    (Figure::ReadBytes, other("hit_ratio", "HITRATIO", 8, ratio, "hits / accesses; - when nothing was read")),
    (Figure::ReadBytes, figure(Figure::Inflight)),
    (Figure::ReadAheadPages, figure(Figure::Fills)),
    (
        Figure::Dirtied,
        other(
            "write_hit_ratio",
            "WRITE_HIT%",
            10,
            write_ratio,
            "write hits / write accesses; - when nothing was written",
        ),
    ),
    (
        Figure::DirectReadBytes,
        other("direct_bytes", "DIRECT_MB", 9, direct, "bytes read and written past the cache, together"),
    ),
];

/// What stands behind the figures.
const BEHIND: &[Column] = &[
    other("out", "OUT", 8, out, "pages that left the cache: evicted and removed together"),
    other(
        "back",
        "BACK",
        8,
        back,
        "pages that came back, of rows by evictor: added again after these had pushed them out",
    ),
    other(
        "held_bytes",
        "HELD_MB",
        8,
        held,
        "of rows by cgroup: files in the cache that it and those below it are charged for, at the end",
    ),
    other(
        "limit_bytes",
        "LIMIT_MB",
        8,
        limit,
        "of rows by cgroup: the lowest limit of memory that it is under; - where there is none",
    ),
    other("buffers_bytes", "BUFFERS_MB", 10, buffers, "size of the block devices' own cache, at the end"),
    other("cached_bytes", "CACHED_MB", 10, cached, "size of the page cache, at the end"),
    other("dirty_bytes", "DIRTY_MB", 8, dirty, "dirty pages waiting to be written back, at the end"),
    other("lost", "LOST", 8, lost, "events that could not be accounted: what is shown is not exact"),
    classic::HITS,
    classic::MISSES,
    classic::RATIO,
    classic::ADDED,
    classic::ACCESSED,
    classic::DIRTIED,
    classic::BUFFERS,
];

/// Figures of [`BEFORE`]: they have their place already.
const fn placed(figure: Figure) -> bool {
    let mut i = 0;
    while i < BEFORE.len() {
        match BEFORE[i].1.from {
            Origin::Figure(f) if f as usize == figure as usize => return true,
            _ => {}
        }
        i += 1;
    }
    false
}

/// How many columns there are.
const COUNT: usize = {
    let (mut n, mut i) = (BEFORE.len() + BEHIND.len(), 0);
    while i < FIGURES {
        if !placed(Figure::ALL[i]) {
            n += 1;
        }
        i += 1;
    }
    n
};

const fn all() -> [Column; COUNT] {
    let mut out = [BEHIND[0]; COUNT];
    let (mut n, mut i) = (0, 0);
    while i < FIGURES {
        let at = Figure::ALL[i];
        let mut b = 0;
        while b < BEFORE.len() {
            if BEFORE[b].0 as usize == at as usize {
                out[n] = BEFORE[b].1;
                n += 1;
            }
            b += 1;
        }
        if !placed(at) {
            out[n] = figure(at);
            n += 1;
        }
        i += 1;
    }
    let mut b = 0;
    while b < BEHIND.len() {
        out[n] = BEHIND[b];
        n += 1;
        b += 1;
    }
    out
}

/// Every column, in the order of the wide set.
pub const COLUMNS: &[Column] = &all();

/// The columns shown unless others are requested.
pub const DEFAULT: &[&str] =
    &["hits", "readahead_hits", "misses", "dirtied", "hit_ratio", "buffers_bytes", "cached_bytes"];

/// The columns shown with rows: what only the system as a whole has would stand in their way.
pub const ROWS: &[&str] = &["hits", "readahead_hits", "misses", "dirtied", "hit_ratio"];

/// The columns of rows of those who push pages out of the cache.
pub const EVICTORS: &[&str] = &["evicted", "removed", "back", "refaulted"];

/// The columns of `-x`.
pub const WIDE: &[&str] = &[
    "accesses",
    "hits",
    "readahead_hits",
    "misses",
    "hit_ratio",
    "read_bytes",
    "fills",
    "readahead_pages",
    "readahead_wasted",
    "fault_misses",
    "write_hits",
    "write_misses",
    "dirtied",
    "buffer_dirtied",
    "direct_read_bytes",
    "direct_write_bytes",
    "evicted",
    "removed",
    "refaulted",
    "buffers_bytes",
    "cached_bytes",
    "dirty_bytes",
    "lost",
];

/// The columns of `--engine classic`: those of bcc's cachestat.
#[must_use]
pub fn of_classic(extended: bool) -> Vec<&'static Column> {
    let sizes: &[&str] = if extended {
        &["buffers_bytes", "cached_bytes", "dirty_bytes", "lost"]
    } else {
        &["buffers_bytes", "cached_bytes"]
    };
    let parts = if extended { classic::PARTS } else { &[] };
    classic::PLAIN.iter().chain(parts).chain(set(sizes)).collect()
}

/// The columns of `--engine both`, those of the exact engine first; their titles are told apart by a line above.
#[must_use]
pub fn of_both(extended: bool) -> Vec<&'static Column> {
    let exact = if extended { WIDE } else { &DEFAULT[..4] };
    let (plain, parts) = if extended { (4, classic::PARTS) } else { (3, &[] as &[Column]) };
    set(exact).into_iter().chain(&classic::PLAIN[..plain]).chain(parts).collect()
}

/// The column of that name or title, in upper or lower case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|c| c.id.eq_ignore_ascii_case(name) || c.title.eq_ignore_ascii_case(name))
}

/// The columns of a fixed set.
#[must_use]
pub fn set(ids: &[&str]) -> Vec<&'static Column> {
    ids.iter().filter_map(|id| find(id)).collect()
}

/// Reads a list of columns, separated by commas.
///
/// # Errors
/// When the list is empty, or names a column twice, or one that does not exist.
pub fn parse(list: &str) -> Result<Vec<&'static Column>, String> {
    let mut columns: Vec<&'static Column> = Vec::new();
    for name in list.split(',').map(str::trim) {
        if name.is_empty() {
            return Err("a column name is missing (the list is NAME,NAME,…)".into());
        }
        let Some(column) = find(name) else {
            let known: Vec<_> = COLUMNS.iter().map(|c| c.id).collect();
            return Err(format!("there is no column '{name}'; the columns are {}", known.join(", ")));
        };
        if columns.iter().any(|c| c.id == column.id) {
            return Err(format!("column '{}' is listed twice", column.id));
        }
        columns.push(column);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
