//! Metrics as text: Prometheus' own format, and OpenMetrics.
//!
//! They are made from the table of figures. Pages are bytes here. What is not known has no series; ratios are left to whoever
//! has the series. A sum by a label has a name of its own, so that nobody counts it twice who adds the other one up.

use std::fmt::Write as _;

use super::sums::Labels;
use super::sums::Sums;
use crate::figures::FIGURES;
use crate::figures::Figure;
use crate::figures::Unit;
use crate::model;
use crate::sample::Counters;

/// The format of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Format {
    /// As HTTP names it.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
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
#[allow(clippy::cast_precision_loss)]
fn value(figure: Figure, name: &str, n: u64, page: u64) -> String {
    match figure.unit() {
        Unit::Pages if name.ends_with("_bytes") => u128::from(n).saturating_mul(page.into()).to_string(),
        Unit::Nanoseconds => format!("{}.{:09}", n / 1_000_000_000, n % 1_000_000_000),
        _ => n.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

struct Writer {
    out: String,
    format: Format,
}

impl Writer {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let total = if kind == "counter" && self.format == Format::Prometheus { "_total" } else { "" };
        let name = match (self.format, kind) {
            (Format::OpenMetrics, "info") => name.trim_end_matches("_info"),
            _ => name,
        };
        let kind = if self.format == Format::Prometheus && kind == "info" { "gauge" } else { kind };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let help = if self.format == Format::OpenMetrics { help.replace('"', "\\\"") } else { help };
        let _ = writeln!(self.out, "# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}");
    }

    fn line<'a>(&mut self, name: &str, labels: impl Iterator<Item = (&'a str, &'a str)>, value: &str) {
        self.out.push_str(name);
        let mut first = true;
        for (key, text) in labels {
            let _ = write!(self.out, "{}{key}=\"{}\"", if first { "{" } else { "," }, escape(text));
            first = false;
        }
        let _ = writeln!(self.out, "{} {value}", if first { "" } else { "}" });
    }

    fn gauge(&mut self, name: &str, help: &str, value: &str) {
        self.head(name, "gauge", help);
        self.line(name, [].into_iter(), value);
    }

    fn counter(&mut self, name: &str, help: &str, value: &str) {
        self.head(name, "counter", help);
        self.line(&format!("{name}_total"), [].into_iter(), value);
    }

    /// Every metric of the table, for these series.
    fn figures(
        &mut self,
        prefix: &str,
        of: &str,
        known: &[bool; FIGURES],
        page: u64,
        all: &[(Labels, Counters)],
    ) {
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
            let full = format!("{prefix}{name}");
            self.head(&full, "counter", &help);
            let full = format!("{full}_total");
            for (labels, counters) in all {
                let values = model::known_figures(counters, known);
                for figure in &figures {
                    let Some(n) = values.get(*figure) else { continue };
                    let own = figure.metric().map(split).and_then(|(_, label)| label);
                    let labels = labels.iter().map(|(k, v)| (*k, v.as_str())).chain(own);
                    self.line(&full, labels, &value(*figure, name, n, page));
                }
            }
        }
    }

    /// Read calls by how long they took. What they took together is not known, so it is not said.
    fn latency(&mut self, latency: &crate::sample::Histograms) {
        const NAME: &str = "pagecache_read_latency_seconds";
        self.head(NAME, "histogram", "read calls by the time that they took, with those that missed apart");
        for (outcome, buckets) in [("hit", &latency.hit), ("miss", &latency.miss)] {
            let mut sum = 0_u64;
            for (i, n) in (0_i32..).zip(buckets) {
                sum = sum.saturating_add(*n);
                // The last one has no end.
                if usize::try_from(i + 1) == Ok(buckets.len()) {
                    break;
                }
                let end = format!("{:e}", f64::from(8 + i).exp2() * 1e-9);
                self.line(
                    &format!("{NAME}_bucket"),
                    [("outcome", outcome), ("le", end.as_str())].into_iter(),
                    &sum.to_string(),
                );
            }
            let labels = [("outcome", outcome), ("le", "+Inf")];
            self.line(&format!("{NAME}_bucket"), labels.into_iter(), &sum.to_string());
            if self.format == Format::Prometheus {
                self.line(&format!("{NAME}_count"), [("outcome", outcome)].into_iter(), &sum.to_string());
            }
        }
    }
}

/// The rest of a line: what has no series of its own.
fn with_other(
    mut series: Vec<(Labels, Counters)>,
    line: &Counters,
    keys: &[&'static str],
) -> Vec<(Labels, Counters)> {
    let mut rest = *line;
    for (_, sum) in &series {
        rest.0.iter_mut().zip(&sum.0).for_each(|(rest, n)| *rest = rest.saturating_sub(*n));
    }
    series.push((keys.iter().map(|k| (*k, "other".to_owned())).collect(), rest));
    series
}

/// All metrics of now.
#[must_use]
pub fn exposition(sums: &Sums, format: Format) -> String {
    let mut w = Writer { out: String::with_capacity(1 << 14), format };
    let page = rustix::param::page_size() as u64;
    w.head("pagecache_build_info", "info", "version of cachetopd, and the engine that counts");
    let build = [("version", env!("CARGO_PKG_VERSION")), ("engine", sums.engine)];
    w.line("pagecache_build_info", build.into_iter(), "1");
    w.gauge("pagecache_page_size_bytes", "bytes in a page of this machine", &page.to_string());
    if let Some(sample) = &sums.last {
        w.figures("pagecache_", "", &sums.known, page, &[(Labels::new(), sample.total)]);
        let groups = with_other(sums.cgroups.list(), &sample.total, &["cgroup"]);
        w.figures("pagecache_cgroup_", ", by cgroup", &sums.of_rows, page, &groups);
        if let Some(line) = &sample.by_file {
            let mounts = with_other(sums.mounts.list(), line, &["device", "mount"]);
            w.figures("pagecache_mount_", ", by mount", &sums.of_files, page, &mounts);
        }
        if let Some(latency) = &sample.latency {
            w.latency(latency);
        }
        for (name, help, bytes) in [
            ("pagecache_cached_bytes", "Cached of /proc/meminfo", sample.memory.cached_bytes),
            ("pagecache_buffers_bytes", "Buffers of /proc/meminfo", sample.memory.buffers_bytes),
            ("pagecache_dirty_bytes", "Dirty of /proc/meminfo", sample.memory.dirty_bytes),
        ] {
            w.gauge(name, help, &bytes.to_string());
        }
        if !sample.lost.by_reason.is_empty() {
            w.head("pagecache_lost_events", "counter", "events that could not be accounted");
            for (why, n) in &sample.lost.by_reason {
                w.line("pagecache_lost_events_total", [("reason", why.as_ref())].into_iter(), &n.to_string());
            }
        }
        let time = sample.time.as_millisecond();
        let seconds = format!("{}.{:03}", time.div_euclid(1000), time.rem_euclid(1000));
        w.gauge("pagecache_sample_timestamp_seconds", "when the counters were read", &seconds);
    }
    w.counter("pagecache_samples", "samples that were taken", &sums.ticks.to_string());
    if let Some(n) = sums.unrecorded {
        w.counter("pagecache_unrecorded_samples", "samples that could not be recorded", &n.to_string());
    }
    if !sums.moments.is_empty() {
        w.head("pagecache_moments", "counter", "how often a condition of --when came to hold");
        for (when, n) in &sums.moments {
            w.line("pagecache_moments_total", [("when", when.as_str())].into_iter(), &n.to_string());
        }
    }
    if let Some(ran) = sums.commands {
        w.head("pagecache_moment_commands", "counter", "what came of the command of --then");
        for (outcome, n) in ran.list() {
            w.line("pagecache_moment_commands_total", [("outcome", outcome)].into_iter(), &n.to_string());
        }
    }
    if format == Format::OpenMetrics {
        w.out.push_str("# EOF\n");
    }
    w.out
}
