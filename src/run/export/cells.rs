//! What the tables have: the columns, and the cells of each line. A figure's column is named as its place in `--json`, with
//! `_` for each step: `read.hits` is `read_hits`.

use super::table::Cell;
use super::table::Kind;
use crate::classic;
use crate::classic::Counter;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::figures::GROUPS;
use crate::model::Interval;
use crate::model::Row;
use crate::model::Who;
use crate::sample::Histograms;
use crate::text::foreign::Foreign;

/// Columns that all tables begin with: which interval, its end, its length in seconds.
const LEAD: [(&str, Kind); 3] =
    [("interval", Kind::Number), ("time", Kind::Time), ("interval_s", Kind::Real)];
/// State of the cache at the end of the interval.
const MEMORY: [&str; 3] = ["cache_cached_bytes", "cache_buffers_bytes", "cache_dirty_bytes"];
/// Whom a row is about.
const WHO: [(&str, Kind); 13] = [
    ("other", Kind::Flag),
    ("pid", Kind::Number),
    ("tid", Kind::Number),
    ("uid", Kind::Number),
    ("user", Kind::Text),
    ("comm", Kind::Text),
    ("cgroup", Kind::Text),
    ("container", Kind::Text),
    ("unit", Kind::Text),
    ("path", Kind::Text),
    ("device", Kind::Text),
    ("inode", Kind::Number),
    ("mount", Kind::Text),
];

/// Names and kinds of the columns of a table.
pub(super) type Columns = Vec<(String, Kind)>;

fn named(columns: &[(&str, Kind)]) -> Columns {
    columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

/// What figures are of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Interval,
    Row,
}

impl Of {
    /// Its figures, in order.
    pub(super) fn figures(self) -> impl Iterator<Item = Figure> {
        let groups = GROUPS.iter().filter(move |(_, of_rows)| *of_rows || self == Of::Interval);
        groups.flat_map(|(group, _)| Figure::of_group(group))
    }
}

fn figure_columns(of: Of) -> Columns {
    let mut out = Columns::new();
    for figure in of.figures() {
        out.push((format!("{}_{}", figure.group(), figure.key()), Kind::Number));
        if figure == Figure::Misses {
            out.push(("read_hit_ratio".into(), Kind::Real));
        }
    }
    out.extend(Counter::EVENTS.iter().map(|c| (format!("classic_{}", c.key()), Kind::Number)));
    out.extend(named(&[("classic_hits", Kind::Signed), ("classic_misses", Kind::Signed)]));
    out
}

fn figure_cells(of: Of, figures: &Figures, classic: Option<&classic::Figures>, out: &mut Vec<Cell>) {
    for figure in of.figures() {
        out.push(figures.get(figure).into());
        if figure == Figure::Misses {
            out.push(figures.hit_ratio().map_or(Cell::Null, Cell::Real));
        }
    }
    out.extend(Counter::EVENTS.iter().map(|c| classic.and_then(|f| f.get(*c)).into()));
    for n in [classic.and_then(classic::Figures::hits), classic.and_then(classic::Figures::misses)] {
        out.push(n.map_or(Cell::Null, Cell::Signed));
    }
}

fn lead(number: u64, interval: &Interval) -> Vec<Cell> {
    let time = Cell::Time(interval.time.as_microsecond());
    vec![Cell::Number(number), time, Cell::Real(interval.seconds)]
}

/// A line for each interval.
pub(super) fn interval_columns() -> Columns {
    let mut out = named(&LEAD);
    out.push(("engine".into(), Kind::Text));
    out.extend(figure_columns(Of::Interval));
    out.extend(MEMORY.map(|name| (name.to_owned(), Kind::Number)));
    out.push(("lost_total".into(), Kind::Number));
    out
}

pub(super) fn interval_cells(number: u64, interval: &Interval) -> Vec<Cell> {
    let mut out = lead(number, interval);
    out.push(Cell::Text(interval.engine.to_owned()));
    figure_cells(Of::Interval, &interval.total, interval.classic.as_ref(), &mut out);
    let memory = &interval.memory;
    out.extend([memory.cached_bytes, memory.buffers_bytes, memory.dirty_bytes].map(Cell::Number));
    out.push(Cell::Number(interval.lost.total()));
    out
}

/// A line for each row of each interval.
pub(super) fn row_columns() -> Columns {
    let mut out = named(&LEAD);
    out.extend(named(&WHO));
    out.extend(figure_columns(Of::Row));
    out
}

pub(super) fn row_cells(number: u64, interval: &Interval, row: &Row) -> Vec<Cell> {
    let mut out = lead(number, interval);
    let Who { pid, tid, uid, user, comm, cgroup, container, unit, path, device, inode, mount, .. } = &row.who;
    let id = |n: &Option<u32>| Cell::from(n.map(u64::from));
    // As it is, as in JSON: nothing of it is shown here.
    let text = |t: &Option<Foreign>| t.as_ref().map_or(Cell::Null, |t| Cell::Text(t.raw().into_owned()));
    out.extend([Cell::Flag(row.who.other), id(pid), id(tid), id(uid), text(user), text(comm), text(cgroup)]);
    out.extend([text(container), text(unit), text(path), text(device), (*inode).into(), text(mount)]);
    figure_cells(Of::Row, &row.figures, row.classic.as_ref(), &mut out);
    out
}

/// A line for each bucket of a histogram that has something in it.
pub(super) fn histogram_columns() -> Columns {
    let mut out = named(&LEAD);
    out.extend(named(&[("of", Kind::Text), ("bucket", Kind::Number), ("count", Kind::Number)]));
    out
}

pub(super) fn histogram_cells(number: u64, interval: &Interval) -> Vec<Vec<Cell>> {
    let Some(histograms) = &interval.histograms else { return Vec::new() };
    let Histograms { hit, miss, window } = histograms.as_ref();
    let kinds =
        [("latency.hit", &hit[..]), ("latency.miss", &miss[..]), ("readahead.window_pages", &window[..])];
    let filled = kinds.into_iter().flat_map(|(name, all)| {
        let some = all.iter().zip(0_u64..).filter(|(n, _)| **n > 0);
        some.map(move |(n, bucket)| (name, bucket, *n))
    });
    let line = |(name, bucket, n): (&str, u64, u64)| {
        let mut out = lead(number, interval);
        out.extend([Cell::Text(name.to_owned()), Cell::Number(bucket), Cell::Number(n)]);
        out
    };
    filled.map(line).collect()
}
