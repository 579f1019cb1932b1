//! What there is to tell as metrics: families of points, made from the table of figures. How they are written is another
//! matter ([`super::exposition`], [`super::protobuf`], [`super::otlp`]).
//!
//! Pages are bytes here. What is not known has no point; ratios are left to whoever has the series. A sum by a label has a
//! family of its own, so that nobody counts it twice who adds the other one up.

use jiff::Timestamp;

use super::labels::Labels;
use super::sums::Sum;
use super::sums::Sums;
use super::used::Used;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Unit;
use crate::model;
use crate::room::Table;
use crate::sample::Counters;
use crate::sample::Histograms;
use crate::working::WINDOWS;

/// How a value behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Always 1: its labels tell.
    Info,
    /// Goes up and down.
    Gauge,
    /// Only rises, from its beginning on.
    Counter,
}

/// A value, as exactly as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Whole(u128),
    /// Seconds are written.
    Nanoseconds(u64),
    /// Seconds are written.
    Milliseconds(i64),
}

impl Value {
    pub(super) fn float(self) -> f64 {
        match self {
            Value::Whole(n) => n as f64,
            Value::Nanoseconds(n) => n as f64 / 1e9,
            Value::Milliseconds(n) => n as f64 / 1e3,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Whole(n) => write!(f, "{n}"),
            Value::Nanoseconds(n) => write!(f, "{}.{:09}", n / 1_000_000_000, n % 1_000_000_000),
            Value::Milliseconds(n) => write!(f, "{}.{:03}", n.div_euclid(1000), n.rem_euclid(1000)),
        }
    }
}

/// One value, its labels, and since when it counts.
pub(super) struct Point<'a> {
    pub labels: Vec<(&'static str, &'a str)>,
    pub value: Value,
    pub since: Timestamp,
}

/// What has one name; `_total` is not part of it.
pub(super) struct Family<'a> {
    pub name: String,
    pub kind: Kind,
    pub help: String,
    pub points: Vec<Point<'a>>,
}

/// What is told, one after the other.
pub(super) enum Told<'a> {
    Family(Family<'a>),
    /// Read calls by how long they took. What they took together is not known.
    Latency(&'a Histograms),
}

/// What a bucket of latency is about, and its calls.
pub(super) fn outcomes(latency: &Histograms) -> [(&'static str, &[u64]); 2] {
    [("hit", &latency.hit), ("miss", &latency.miss)]
}

/// What latency is.
pub(super) const LATENCY_HELP: &str = "read calls by the time that they took, with those that missed apart";

/// Where the first bucket of latency ends: 2 to the power of this, in nanoseconds. Each of the others ends at twice of what
/// the one before does, but for the last, which has no end.
pub(super) const FIRST_END: i32 = 8;

/// The end of a bucket in seconds; `None`: it has none.
pub(super) fn bucket_end(bucket: usize, of: usize) -> Option<f64> {
    let power = FIRST_END + i32::try_from(bucket).ok()?;
    (bucket + 1 < of).then(|| f64::from(power).exp2() * 1e-9)
}

/// A metric's name without its labels, and the label that the figure has among those of the same name.
fn split(metric: &'static str) -> (&'static str, Option<(&'static str, &'static str)>) {
    let Some((name, label)) = metric.split_once('{') else { return (metric, None) };
    let label = label.trim_end_matches('}').split_once('=');
    (name, label.map(|(key, value)| (key, value.trim_matches('"'))))
}

/// The metrics: names, and the figures that each has, in the order of the table.
fn metrics() -> Vec<(&'static str, Vec<Figure>)> {
    let mut out: Vec<(&'static str, Vec<Figure>)> = Vec::new();
    for figure in Figure::ALL {
        let Some((name, _)) = figure.metric().map(split) else { continue };
        match out.iter_mut().find(|(n, _)| *n == name) {
            Some((_, figures)) => figures.push(*figure),
            None => out.push((name, vec![*figure])),
        }
    }
    out
}

/// A value in the unit that the name tells.
fn value(figure: Figure, name: &str, n: u64, page: u64) -> Value {
    match figure.unit() {
        Unit::Pages if name.ends_with("_bytes") => Value::Whole(u128::from(n).saturating_mul(page.into())),
        Unit::Nanoseconds => Value::Nanoseconds(n),
        _ => Value::Whole(n.into()),
    }
}

struct Teller<'s, 'f> {
    sums: &'s Sums,
    page: u64,
    to: &'f mut dyn FnMut(Told<'_>),
}

impl Teller<'_, '_> {
    fn one(&mut self, name: &str, kind: Kind, help: &str, value: Value) {
        self.several(name, kind, help, vec![(Vec::new(), value)]);
    }

    fn several(&mut self, name: &str, kind: Kind, help: &str, all: Vec<(Vec<(&'static str, &str)>, Value)>) {
        let since = self.sums.since;
        let points = all.into_iter().map(|(labels, value)| Point { labels, value, since }).collect();
        (self.to)(Told::Family(Family { name: name.into(), kind, help: help.into(), points }));
    }

    /// Distinct pages of each window that is known.
    fn used(&mut self, used: &Used) {
        let windows = WINDOWS.map(|minutes| format!("{minutes}m"));
        let machine = [(Labels::new(), used.all)];
        for (name, of, all) in [
            ("pagecache_working_set_bytes", "", &machine[..]),
            ("pagecache_cgroup_working_set_bytes", ", by cgroup", &used.cgroups),
        ] {
            let mut points = Vec::new();
            for (labels, pages) in all {
                for (window, pages) in windows.iter().zip(pages) {
                    let Some(pages) = pages else { continue };
                    let labels = labels.iter().map(|(key, text)| (*key, text.as_str()));
                    let bytes = u128::from(*pages).saturating_mul(self.page.into());
                    points.push((labels.chain([("window", window.as_str())]).collect(), Value::Whole(bytes)));
                }
            }
            if !points.is_empty() {
                let help =
                    format!("distinct pages of files used in the last minutes, estimated{of}, in bytes");
                self.several(name, Kind::Gauge, &help, points);
            }
        }
    }

    /// The tables in the kernel, each by its name.
    fn tables(&mut self, tables: &[Table]) {
        for (name, help, of) in [
            (
                "pagecache_table_entries",
                "entries of tables in the kernel that are in use",
                (|t| t.used) as fn(&Table) -> Option<u64>,
            ),
            ("pagecache_table_capacity", "entries that tables in the kernel have room for", |t| t.room),
            ("pagecache_table_bytes", "memory of tables in the kernel, in bytes", |t| t.bytes),
        ] {
            let known = tables.iter().filter_map(|t| Some((vec![("table", t.kind.about().id)], of(t)?)));
            let points: Vec<_> = known.map(|(labels, n)| (labels, Value::Whole(n.into()))).collect();
            if !points.is_empty() {
                self.several(name, Kind::Gauge, help, points);
            }
        }
    }

    /// Every metric of the table, for these series.
    fn figures(&mut self, prefix: &str, of: &str, known: &[bool; FIGURES], all: &[Sum]) {
        for (name, figures) in metrics() {
            let figures: Vec<_> = figures.into_iter().filter(|f| known[*f as usize]).collect();
            if figures.is_empty() || all.is_empty() {
                continue;
            }
            let told = figures.iter().map(|f| match f.metric().map(split) {
                Some((_, Some((_, value)))) => format!("{value}: {}", f.about()),
                _ => f.about().to_owned(),
            });
            let pages = figures.iter().all(|f| f.unit() == Unit::Pages);
            let unit = if pages && name.ends_with("_bytes") { ", in bytes" } else { "" };
            let help = format!("{}{of}{unit}", told.collect::<Vec<_>>().join("; "));
            let mut points = Vec::with_capacity(all.len() * figures.len());
            for sum in all {
                let values = model::known_figures(&sum.counters, known);
                for figure in &figures {
                    let Some(n) = values.get(*figure) else { continue };
                    let own = figure.metric().map(split).and_then(|(_, label)| label);
                    let labels = sum.labels.iter().map(|(k, v)| (*k, v.as_str())).chain(own).collect();
                    points.push(Point {
                        labels,
                        value: value(*figure, name, n, self.page),
                        since: sum.since,
                    });
                }
            }
            let family = Family { name: format!("{prefix}{name}"), kind: Kind::Counter, help, points };
            (self.to)(Told::Family(family));
        }
    }
}

/// The rest of a line: what has no series of its own.
fn with_other(mut series: Vec<Sum>, line: &Counters, since: Timestamp, keys: &[&'static str]) -> Vec<Sum> {
    let mut rest = *line;
    for sum in &series {
        rest.0.iter_mut().zip(&sum.counters.0).for_each(|(rest, n)| *rest = rest.saturating_sub(*n));
    }
    let labels: Labels = keys.iter().map(|k| (*k, "other".to_owned())).collect();
    series.push(Sum { labels, counters: rest, since });
    series
}

/// Tells all metrics of now.
pub(super) fn tell(sums: &Sums, to: &mut dyn FnMut(Told<'_>)) {
    let mut t = Teller { sums, page: rustix::param::page_size() as u64, to };
    let whole = |n: u64| Value::Whole(n.into());
    let build = vec![("version", env!("CARGO_PKG_VERSION")), ("engine", sums.engine)];
    let help = "version of cachetopd, and the engine that counts";
    t.several("pagecache_build_info", Kind::Info, help, vec![(build, whole(1))]);
    let page = whole(t.page);
    t.one("pagecache_page_size_bytes", Kind::Gauge, "bytes in a page of this machine", page);
    if let Some(sample) = &sums.last {
        let all = [Sum { labels: Labels::new(), counters: sample.total, since: sums.since }];
        t.figures("pagecache_", "", &sums.known, &all);
        let groups = with_other(sums.cgroups.list(), &sample.total, sums.since, &["cgroup"]);
        t.figures("pagecache_cgroup_", ", by cgroup", &sums.of_rows, &groups);
        if let Some(line) = &sample.by_file {
            let mounts = with_other(sums.mounts.list(), line, sums.since, &["device", "mount"]);
            t.figures("pagecache_mount_", ", by mount", &sums.of_files, &mounts);
        }
        if let Some(latency) = &sample.latency {
            (t.to)(Told::Latency(latency));
        }
        for (name, help, bytes) in [
            ("pagecache_cached_bytes", "Cached of /proc/meminfo", sample.memory.cached_bytes),
            ("pagecache_buffers_bytes", "Buffers of /proc/meminfo", sample.memory.buffers_bytes),
            ("pagecache_dirty_bytes", "Dirty of /proc/meminfo", sample.memory.dirty_bytes),
        ] {
            t.one(name, Kind::Gauge, help, whole(bytes));
        }
        let lost = sample.lost.by_reason.iter();
        let lost: Vec<_> = lost.map(|(why, n)| (vec![("reason", why.as_ref())], whole(*n))).collect();
        if !lost.is_empty() {
            t.several("pagecache_lost_events", Kind::Counter, "events that could not be accounted", lost);
        }
        let time = Value::Milliseconds(sample.time.as_millisecond());
        t.one("pagecache_sample_timestamp_seconds", Kind::Gauge, "when the counters were read", time);
    }
    if let Some(used) = &sums.used {
        t.used(used);
    }
    t.tables(&sums.tables);
    t.one("pagecache_samples", Kind::Counter, "samples that were taken", whole(sums.ticks));
    if let Some(n) = sums.unrecorded {
        let help = "samples that could not be recorded";
        t.one("pagecache_unrecorded_samples", Kind::Counter, help, whole(n));
    }
    let moments: Vec<_> = sums.moments.iter().map(|(w, n)| (vec![("when", w.as_str())], whole(*n))).collect();
    if !moments.is_empty() {
        let help = "how often a condition of --when came to hold";
        t.several("pagecache_moments", Kind::Counter, help, moments);
    }
    let outcomes =
        |list: &[(&'static str, u64)]| list.iter().map(|(o, n)| (vec![("outcome", *o)], whole(*n))).collect();
    if let Some(ran) = sums.commands {
        let help = "what came of the command of --then";
        t.several("pagecache_moment_commands", Kind::Counter, help, outcomes(&ran.list()));
    }
    if let Some(pushed) = sums.pushed {
        let help = "what came of the requests to the receiver of --otlp";
        t.several("pagecache_otlp_requests", Kind::Counter, help, outcomes(&pushed.list()));
        let help = "what waits for the receiver of --otlp";
        t.one("pagecache_otlp_queued_bytes", Kind::Gauge, help, whole(pushed.queued_bytes));
    }
}
