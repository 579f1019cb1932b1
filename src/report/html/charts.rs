//! Charts as SVG. What lies across is in percent, and letters have a size of their own: so a chart is as wide as there is
//! room, and on a phone its letters are as large as elsewhere.

use std::fmt::Write as _;

use super::escape::escape;
use crate::report::data::Latency;
use crate::report::data::Run;
use crate::report::data::Tick;
use crate::report::time::PARTS;
use crate::report::time::Parts;
use crate::report::units;
use crate::text::numbers::Unit;

/// Height of the plot, and of the numbers below it.
pub(super) const HEIGHT: f64 = 160.0;
const BELOW: f64 = 20.0;
/// Numbers below a chart: on a wide window, and every third of them on a narrow one.
const NUMBERS: usize = 12;

/// Begins a chart: what its axes are, and the numbers at the left, from above.
pub(super) fn open(label: &str, axes: &str, numbers: [&str; 3], out: &mut String) {
    let _ = writeln!(out, "<figure class=\"chart\">\n<figcaption>{}</figcaption>", escape(axes));
    let spans: String = numbers.iter().map(|n| format!("<span>{}</span>", escape(n))).collect();
    let _ = writeln!(
        out,
        "<div class=\"y\">{spans}</div>\n<svg class=\"plot\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    );
    for part in [0.0, 0.5, 1.0] {
        let y = (HEIGHT - 1.0) * part + 0.5;
        let _ = writeln!(out, "<line class=\"axis\" x1=\"0\" y1=\"{y:.1}\" x2=\"100%\" y2=\"{y:.1}\"/>");
    }
}

/// A number below, in percent of the width; none sticks out at the sides.
pub(super) fn below(at: f64, text: &str, class: &str, out: &mut String) {
    let anchor = match at {
        at if at < 8.0 => "start",
        at if at > 92.0 => "end",
        _ => "middle",
    };
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{at:.2}%\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
        HEIGHT + BELOW - 5.0,
        escape(text)
    );
}

pub(super) fn close(legend: impl Iterator<Item = (String, usize)>, out: &mut String) {
    out.push_str("</svg>\n");
    keys(legend, out);
    out.push_str("</figure>\n");
}

fn keys(items: impl Iterator<Item = (String, usize)>, out: &mut String) {
    out.push_str("<ul class=\"legend\">\n");
    for (name, colour) in items {
        let _ = writeln!(out, "<li><i class=\"p{colour}\"></i>{}</li>", escape(&name));
    }
    out.push_str("</ul>\n");
}

/// The colour of a part: what has one in the charts over time, too, has the same there.
fn colour(part: usize) -> usize {
    const COLOURS: [usize; PARTS.len()] = [0, 8, 1, 2, 3, 4, 5, 6, 7];
    COLOURS.get(part).copied().unwrap_or(part)
}

/// One bar a run, its parts side by side, all on one scale; `key` is what the legend says of each part.
pub(super) fn bars(runs: &[(String, &Run)], key: impl Fn(usize) -> Option<String>, out: &mut String) {
    let length = |run: &Run| {
        let parts = Parts::divide(run);
        let sum: f64 = PARTS.iter().filter_map(|(part, _)| parts.get(*part)).sum();
        sum.max(run.wall_s)
    };
    let most = runs.iter().map(|(_, r)| length(r)).fold(1e-9, f64::max);
    out.push_str("<figure class=\"bars\">\n<figcaption>seconds, all threads added up; at the right the wall time</figcaption>\n");
    for (name, run) in runs {
        let parts = Parts::divide(run);
        let _ = writeln!(
            out,
            "<span>{0}</span><svg role=\"img\" aria-label=\"where the time of {0} went\">",
            escape(name)
        );
        let mut x = 0.0;
        for (i, (part, text)) in PARTS.iter().enumerate() {
            let i = colour(i);
            let seconds = parts.get(*part).unwrap_or(0.0);
            let width = seconds / most * 100.0;
            if width > 0.005 {
                let _ = writeln!(
                    out,
                    "<rect class=\"p{i}\" x=\"{x:.3}%\" y=\"0\" width=\"{width:.3}%\" height=\"24\"><title>{text}: {seconds:.3} s</title></rect>"
                );
            }
            x += width;
        }
        let _ = writeln!(out, "</svg><span class=\"wall\">{:.3} s</span>", run.wall_s);
    }
    let _ = writeln!(
        out,
        "<span></span><div class=\"x\"><span>0 s</span><span>{:.3} s</span><span>{most:.3} s</span></div><span></span>",
        most / 2.0
    );
    keys((0..PARTS.len()).filter_map(|i| Some((key(i)?, colour(i)))), out);
    out.push_str("</figure>\n");
}

/// A kind of values over time: name, colour, value of a piece.
type Series = (&'static str, usize, fn(&Tick) -> f64);

const PAGES: &[Series] = &[
    ("misses", 0, |t| t.misses as f64),
    ("first uses of read-ahead", 3, |t| t.readahead_hits as f64),
    ("hits", 5, |t| t.hits as f64),
    ("written", 1, |t| t.written as f64),
];

const WAITS: &[Series] = &[
    ("data", 0, |t| t.data_ns as f64 / 1e9),
    ("metadata", 1, |t| t.metadata_ns as f64 / 1e9),
    ("writing", 3, |t| t.write_ns as f64 / 1e9),
];

/// Pages a second, or what they hold.
pub(super) fn pages(run: &Run, out: &mut String) {
    match run.unit {
        Unit::Pages => over_time(run, PAGES, "pages a second", |v| format!("{}/s", short(v)), out),
        Unit::Bytes => {
            let shown = |v: f64| format!("{}/s", units::bytes((v * units::page() as f64) as u64));
            over_time(run, PAGES, "whole pages, in bytes a second", shown, out);
        }
    }
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

/// A time on an axis that ends there.
fn time(seconds: f64, end: f64) -> String {
    match end {
        end if end >= 20.0 => format!("{seconds:.0} s"),
        end if end >= 2.0 => format!("{seconds:.1} s"),
        end if end >= 0.4 => format!("{seconds:.2} s"),
        _ => format!("{:.0} ms", seconds * 1e3),
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
    let axes = format!("{label}, over the time since the run began");
    open(label, &axes, [&number(most), &number(most / 2.0), &number(0.0)], out);
    let x = |t: f64| t / end * 100.0;
    for (a, b, values) in &pieces {
        let mut y = HEIGHT;
        for (value, (name, colour, _)) in values.iter().zip(series) {
            let height = value / most * HEIGHT;
            if height > 0.05 {
                y -= height;
                let _ = writeln!(
                    out,
                    "<rect class=\"p{colour}\" x=\"{:.3}%\" y=\"{:.1}\" width=\"{:.3}%\" height=\"{height:.1}\"><title>{name}: {} ({a:.2} to {b:.2} s)</title></rect>",
                    x(*a),
                    y.max(0.0),
                    x(*b) - x(*a),
                    number(*value),
                );
            }
        }
    }
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let class = if part == 0.25 || part == 0.75 { "wider" } else { "" };
        below(part * 100.0, &time(end * part, end), class, out);
    }
    let used = series.iter().filter(|(_, _, f)| run.timeline.iter().any(|t| f(t) > 0.0));
    close(used.map(|(name, colour, _)| ((*name).to_owned(), *colour)), out);
}

/// Bars of one or two kinds by bucket, only as far as there is anything.
fn histogram(
    kinds: &[(&'static str, usize, &[u64])],
    edge: fn(usize) -> String,
    (label, axes): (&str, &str),
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
    let logarithm = |n: f64| n.ln_1p() / (most as f64).ln_1p();
    // What stands at half the height of a logarithmic scale.
    let middle = (most as f64).ln_1p().mul_add(0.5, 0.0).exp_m1();
    open(label, axes, [&short(most as f64), &short(middle), "0"], out);
    let slots = last - first + 1;
    // Few bars are no wider than many.
    let slot = 100.0 / slots.max(6) as f64;
    let bar = slot * 0.86 / kinds.len() as f64;
    let step = slots.div_ceil(NUMBERS);
    for i in first..=last {
        let x = (i - first) as f64 * slot;
        for (k, ((name, colour, _), n)) in kinds.iter().zip(at(i)).enumerate().filter(|(_, (_, n))| *n > 0) {
            // Logarithmic: one slow call among a million fast ones is what one looks for.
            let height = logarithm(n as f64) * HEIGHT;
            let _ = writeln!(
                out,
                "<rect class=\"p{colour}\" x=\"{:.3}%\" y=\"{:.1}\" width=\"{:.3}%\" height=\"{height:.1}\"><title>{name}: {n}, from {}</title></rect>",
                x + slot * 0.07 + k as f64 * bar,
                HEIGHT - height,
                bar * 0.94,
                escape(&edge(i)),
            );
        }
        if (i - first) % step == 0 {
            let class = if (i - first) % (step * 3) == 0 { "" } else { "wider" };
            below(x + slot / 2.0, &edge(i), class, out);
        }
    }
    close(kinds.iter().map(|(name, colour, _)| ((*name).to_owned(), *colour)), out);
}

fn edge_of_latency(i: usize) -> String {
    if i == 0 { "0".into() } else { units::seconds(1 << (7 + i.min(40))).replace(".0 ", " ") }
}

pub(super) fn latency(l: &Latency, out: &mut String) {
    let kinds: &[_] = &[("did not miss", 5, l.hit.as_slice()), ("missed", 0, l.miss.as_slice())];
    let axes = "calls (logarithmic), over latency, from";
    histogram(kinds, edge_of_latency, ("read calls by latency", axes), out);
}

pub(super) fn windows(windows: &[u64], unit: Unit, out: &mut String) {
    let edge: fn(usize) -> String = match unit {
        Unit::Pages => |i| units::volume(1 << i.min(40), Unit::Pages),
        Unit::Bytes => |i| units::of_pages(1 << i.min(40)),
    };
    let axes = "windows (logarithmic), over size, from";
    histogram(&[("windows", 3, windows)], edge, ("read-ahead windows by size", axes), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_colour_of_its_own() {
        let style = include_str!("style.css");
        let mut seen: Vec<usize> = (0..PARTS.len()).map(colour).collect();
        assert!(seen.iter().all(
            |n| style.contains(&format!(".p{n} {{")) && style.matches(&format!("--c{n}: ")).count() == 2
        ));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), PARTS.len());
    }
}
