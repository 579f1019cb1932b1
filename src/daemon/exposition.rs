//! Metrics as answers: Prometheus' own text, OpenMetrics, and Prometheus' protobuf, which alone has native histograms.

use std::fmt::Write as _;

use super::families::Family;
use super::families::Kind;
use super::families::LATENCY_HELP;
use super::families::Told;
use super::families::bucket_end;
use super::families::outcomes;
use super::families::tell;
use super::protobuf;
use super::sums::Sums;
use crate::sample::Histograms;

/// The format of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
    /// `application/vnd.google.protobuf`, each family behind its length.
    Protobuf,
}

impl Format {
    /// As HTTP names it.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// What a header `Accept` wants most; of two that it wants alike, the one that it names first. Text, where it names none.
    #[must_use]
    pub fn accepted(accept: &str) -> Format {
        let mut best = (Format::Prometheus, 0.0);
        for kind in accept.split(',') {
            let mut words = kind.split(';').map(str::trim);
            let name = words.next().unwrap_or_default();
            let (mut quality, mut fits) = (1.0_f64, true);
            for (key, value) in words.filter_map(|w| w.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match key.trim() {
                    key if key.eq_ignore_ascii_case("q") => quality = value.parse().unwrap_or(0.0),
                    "proto" => fits &= value == "io.prometheus.client.MetricFamily",
                    "encoding" => fits &= value == "delimited",
                    _ => {}
                }
            }
            let format = match name.to_ascii_lowercase().as_str() {
                "application/vnd.google.protobuf" if fits => Format::Protobuf,
                "application/openmetrics-text" => Format::OpenMetrics,
                "text/plain" => Format::Prometheus,
                _ => continue,
            };
            if quality > best.1 {
                best = (format, quality);
            }
        }
        best.0
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

struct Writer {
    out: String,
    open: bool,
}

impl Writer {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let help = if self.open { help.replace('"', "\\\"") } else { help };
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line<'a>(
        &mut self,
        name: &str,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: impl std::fmt::Display,
    ) {
        self.out.push_str(name);
        let mut first = true;
        for (key, text) in labels {
            let _ = write!(self.out, "{}{key}=\"{}\"", if first { "{" } else { "," }, escape(text));
            first = false;
        }
        let _ = writeln!(self.out, "{} {value}", if first { "" } else { "}" });
    }

    fn family(&mut self, family: &Family<'_>) {
        let name = family.name.as_str();
        let full = if family.kind == Kind::Counter { format!("{name}_total") } else { name.to_owned() };
        let (told, kind) = match (family.kind, self.open) {
            (Kind::Gauge, _) | (Kind::Info, false) => (name, "gauge"),
            (Kind::Counter, false) => (full.as_str(), "counter"),
            (Kind::Counter, true) => (name, "counter"),
            (Kind::Info, true) => (name.trim_end_matches("_info"), "info"),
        };
        self.head(told, kind, &family.help);
        for point in &family.points {
            self.line(&full, point.labels.iter().copied(), point.value);
        }
    }

    fn latency(&mut self, latency: &Histograms) {
        const NAME: &str = "pagecache_read_latency_seconds";
        self.head(NAME, "histogram", LATENCY_HELP);
        for (outcome, buckets) in outcomes(latency) {
            let mut sum = 0_u64;
            for (i, n) in buckets.iter().enumerate() {
                sum = sum.saturating_add(*n);
                let Some(end) = bucket_end(i, buckets.len()) else { break };
                let end = format!("{end:e}");
                self.line(&format!("{NAME}_bucket"), [("outcome", outcome), ("le", end.as_str())], sum);
            }
            self.line(&format!("{NAME}_bucket"), [("outcome", outcome), ("le", "+Inf")], sum);
            if !self.open {
                self.line(&format!("{NAME}_count"), [("outcome", outcome)], sum);
            }
        }
    }
}

/// All metrics of now, as Prometheus' own text.
#[must_use]
pub fn prometheus(sums: &Sums) -> String {
    text(sums, false)
}

/// The same as OpenMetrics.
#[must_use]
pub fn open_metrics(sums: &Sums) -> String {
    text(sums, true)
}

fn text(sums: &Sums, open: bool) -> String {
    let mut w = Writer { out: String::with_capacity(1 << 14), open };
    tell(sums, &mut |told| match told {
        Told::Family(family) => w.family(&family),
        Told::Latency(latency) => w.latency(latency),
    });
    if open {
        w.out.push_str("# EOF\n");
    }
    w.out
}

/// All metrics of now.
#[must_use]
pub fn exposition(sums: &Sums, format: Format) -> Vec<u8> {
    match format {
        Format::Prometheus => prometheus(sums).into_bytes(),
        Format::OpenMetrics => open_metrics(sums).into_bytes(),
        Format::Protobuf => protobuf::exposition(sums),
    }
}
