//! Charts as SVG.

use std::fmt::Write as _;

use super::escape;
use crate::report::data::Latency;
use crate::report::data::Run;
use crate::report::data::Tick;
use crate::report::time::PARTS;
use crate::report::time::Parts;
use crate::report::units;

const WIDTH: f64 = 940.0;
const HEIGHT: f64 = 170.0;
/// Room for numbers at the left, and below.
const LEFT: f64 = 70.0;
const BELOW: f64 = 22.0;

fn open(height: f64, label: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<div class=\"wide\">\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    );
}

/// One bar a run, its parts side by side, all on one scale.
pub(super) fn bars(runs: &[(String, &Run)], out: &mut String) {
    const BAR: f64 = 26.0;
    const STEP: f64 = 36.0;
    let length = |run: &Run| {
        let parts = Parts::of(run);
        let sum: f64 = PARTS.iter().filter_map(|(part, _)| parts.get(*part)).sum();
        sum.max(run.wall_s)
    };
    let most = runs.iter().map(|(_, r)| length(r)).fold(1e-9, f64::max);
    #[allow(clippy::cast_precision_loss)]
    open(runs.len() as f64 * STEP + 6.0, "where the time went", out);
    let scale = (WIDTH - LEFT - 80.0) / most;
    let mut y = 4.0;
    for (name, run) in runs {
        let parts = Parts::of(run);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 17.0,
            escape(name)
        );
        let mut x = LEFT;
        for (i, (part, text)) in PARTS.iter().enumerate() {
            let seconds = parts.get(*part).unwrap_or(0.0);
            let width = seconds * scale;
            if width > 0.05 {
                let _ = writeln!(
                    out,
                    "<rect class=\"p{i}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"><title>{text}: {seconds:.3} s</title></rect>"
                );
            }
            x += width;
        }
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{:.3} s</text>", x + 8.0, y + 17.0, run.wall_s);
        y += STEP;
    }
    out.push_str("</svg></div>\n");
}

/// A kind of values over time: name, colour, value of a piece.
type Series = (&'static str, usize, fn(&Tick) -> f64);

#[allow(clippy::cast_precision_loss)]
const PAGES: &[Series] = &[
    ("misses", 0, |t| t.misses as f64),
    ("first uses of read-ahead", 3, |t| t.readahead_hits as f64),
    ("hits", 5, |t| t.hits as f64),
    ("written", 1, |t| t.written as f64),
];

#[allow(clippy::cast_precision_loss)]
const WAITS: &[Series] = &[
    ("data", 0, |t| t.data_ns as f64 / 1e9),
    ("metadata", 1, |t| t.metadata_ns as f64 / 1e9),
    ("writing", 3, |t| t.write_ns as f64 / 1e9),
];

/// Pages a second.
pub(super) fn pages(run: &Run, out: &mut String) {
    over_time(run, PAGES, "pages a second", |v| format!("{}/s", short(v)), out);
}

/// Threads waiting, on average.
pub(super) fn waits(run: &Run, out: &mut String) {
    over_time(run, WAITS, "threads that wait, on average", |v| format!("{v:.2}"), out);
}

fn short(v: f64) -> String {
    match v {
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// Stacked steps: rates of each piece of the time line.
fn over_time(run: &Run, series: &[Series], label: &str, number: fn(f64) -> String, out: &mut String) {
    let mut pieces = Vec::new();
    let mut from = 0.0;
    for tick in &run.timeline {
        let length = tick.at_s - from;
        if length > 1e-6 {
            pieces.push((
                from,
                tick.at_s,
                series.iter().map(|(_, _, f)| f(tick) / length).collect::<Vec<f64>>(),
            ));
            from = tick.at_s;
        }
    }
    let end = from.max(1e-9);
    let most = pieces.iter().map(|(_, _, v)| v.iter().sum::<f64>()).fold(0.0, f64::max);
    if most <= 0.0 {
        out.push_str("<p class=\"about\">None.</p>\n");
        return;
    }
    open(HEIGHT + BELOW, label, out);
    let x = |t: f64| LEFT + t / end * (WIDTH - LEFT - 10.0);
    for (a, b, values) in &pieces {
        let mut y = HEIGHT;
        for (value, (name, colour, _)) in values.iter().zip(series) {
            let height = value / most * (HEIGHT - 10.0);
            if height > 0.05 {
                y -= height;
                let _ = writeln!(
                    out,
                    "<rect class=\"p{colour}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{name}: {} ({a:.2} to {b:.2} s)</title></rect>",
                    x(*a),
                    (x(*b) - x(*a)).max(0.5),
                    number(*value),
                );
            }
        }
    }
    axes(&number(most), "0 s", &format!("{end:.2} s"), out);
    out.push_str("</svg></div>\n");
    let used = series.iter().filter(|(_, _, f)| run.timeline.iter().any(|t| f(t) > 0.0));
    legend(used.map(|(name, colour, _)| (*name, *colour)), out);
}

fn axes(top: &str, left: &str, right: &str, out: &mut String) {
    let y = HEIGHT;
    let _ = writeln!(out, "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>");
    let _ = writeln!(out, "<text x=\"{}\" y=\"16\" text-anchor=\"end\">{top}</text>", LEFT - 6.0);
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">{left}</text>", y + 16.0);
    let _ = writeln!(out, "<text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{right}</text>", y + 16.0);
}

fn legend(items: impl Iterator<Item = (&'static str, usize)>, out: &mut String) {
    out.push_str("<ul class=\"legend\">\n");
    for (name, colour) in items {
        let _ = writeln!(out, "<li><i class=\"p{colour}\"></i>{name}</li>");
    }
    out.push_str("</ul>\n");
}

/// Bars of one or two kinds by bucket, only as far as there is anything.
fn histogram(
    kinds: &[(&'static str, usize, &[u64])],
    edge: fn(usize) -> String,
    label: &str,
    out: &mut String,
) {
    let buckets = kinds.iter().map(|(_, _, n)| n.len()).max().unwrap_or(0);
    let at = |i: usize| kinds.iter().map(move |(_, _, n)| n.get(i).copied().unwrap_or(0));
    let (Some(first), Some(last)) =
        ((0..buckets).find(|i| at(*i).any(|n| n > 0)), (0..buckets).rfind(|i| at(*i).any(|n| n > 0)))
    else {
        out.push_str("<p class=\"about\">None.</p>\n");
        return;
    };
    let most = (first..=last).flat_map(at).max().unwrap_or(1);
    open(HEIGHT + BELOW, label, out);
    #[allow(clippy::cast_precision_loss)]
    let slot = ((WIDTH - LEFT) / (last - first + 1) as f64).min(110.0);
    #[allow(clippy::cast_precision_loss)]
    let bar = (slot - 8.0).max(4.0) / kinds.len() as f64;
    let mut x = LEFT + 4.0;
    for i in first..=last {
        for (k, ((name, colour, _), n)) in kinds.iter().zip(at(i)).enumerate() {
            // Logarithmic: one slow call among a million fast ones is what one looks for.
            #[allow(clippy::cast_precision_loss)]
            let height =
                if n == 0 { 0.0 } else { ((n as f64).ln_1p() / (most as f64).ln_1p()) * (HEIGHT - 12.0) };
            if n > 0 {
                #[allow(clippy::cast_precision_loss)]
                let left = x + k as f64 * bar;
                let _ = writeln!(
                    out,
                    "<rect class=\"p{colour}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{name}: {n}, from {}</title></rect>",
                    HEIGHT - height,
                    (bar - 1.0).max(1.0),
                    edge(i),
                );
            }
        }
        // Where the bars are narrow, every other of them has its edge below it.
        if slot >= 75.0 || (i - first) % 2 == 0 {
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{}\">{}</text>", HEIGHT + 16.0, edge(i));
        }
        x += slot;
    }
    axes(&most.to_string(), "", "", out);
    out.push_str("</svg></div>\n");
    legend(kinds.iter().map(|(name, colour, _)| (*name, *colour)), out);
    out.push_str("<p class=\"about\">The scale of the bars is logarithmic.</p>\n");
}

fn edge_of_latency(i: usize) -> String {
    if i == 0 { "0".into() } else { units::seconds(1 << (7 + i.min(40))).replace(".0 ", " ") }
}

pub(super) fn latency(l: &Latency, out: &mut String) {
    let kinds: &[_] = &[("did not miss", 5, l.hit.as_slice()), ("missed", 0, l.miss.as_slice())];
    histogram(kinds, edge_of_latency, "read calls by latency", out);
}

pub(super) fn windows(windows: &[u64], out: &mut String) {
    let edge = |i: usize| units::of_pages(1 << i.min(40));
    histogram(&[("windows", 3, windows)], edge, "read-ahead windows by size", out);
}
