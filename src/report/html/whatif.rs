//! The curve of `--what-if`, with the error of each point.

use std::fmt::Write as _;

use super::charts::HEIGHT;
use super::charts::below;
use super::charts::close;
use super::charts::open;
use super::escape::escape;
use super::table;
use super::table::Cell;
use crate::report::units;
use crate::text::foreign;
use crate::whatif::Prediction;
use crate::whatif::Scaled;

pub(super) fn show(what_if: &Prediction, out: &mut String) {
    let whose = foreign::or(what_if.cgroup.as_ref(), "of the machine");
    let _ = writeln!(out, "<p class=\"about\">Cache: {}</p>", escape(&whose));
    if let Some(points) = &what_if.curve {
        curve(what_if, out);
        figures(points, out);
    }
    // Tables and bars of letters are for terminals; all else is said here, too.
    for line in what_if.lines().iter().filter(|l| !l.is_empty() && !l.starts_with(' ')) {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", escape(line));
    }
}

/// Misses over sizes: a line through the points that are known, and across each how far it may be off.
fn curve(what_if: &Prediction, out: &mut String) {
    let points = what_if.curve.as_deref().unwrap_or_default();
    let known: Vec<_> =
        points.iter().filter_map(|p| Some((p, p.miss_ratio?, p.error.unwrap_or(0.0)))).collect();
    let most = known.iter().map(|(_, ratio, error)| ratio + error).fold(0.01, f64::max).min(1.0);
    let percent = |ratio: f64| units::percent(ratio, 1);
    let axes = "accesses whose page must be brought in, over the size of the cache relative to now";
    open("misses by size of the cache", axes, [&percent(most), &percent(most / 2.0), "0"], out);
    // Sizes lie as their logarithms do: half and twice are as far from now.
    let (first, last) = (0.5_f64.log2() - 0.2, 4.0_f64.log2() + 0.2);
    let x = |scale: f64| (scale.log2() - first) / (last - first) * 100.0;
    let y = |ratio: f64| HEIGHT - (ratio / most).clamp(0.0, 1.0) * HEIGHT;
    for pair in known.windows(2) {
        if let [(a, from, _), (b, to, _)] = pair {
            let _ = writeln!(
                out,
                "<line class=\"curve\" x1=\"{:.2}%\" y1=\"{:.1}\" x2=\"{:.2}%\" y2=\"{:.1}\"/>",
                x(a.scale),
                y(*from),
                x(b.scale),
                y(*to)
            );
        }
    }
    for (point, ratio, error) in &known {
        let at = x(point.scale);
        let size = point.size_bytes.map_or_else(|| "-".into(), units::bytes);
        let device = point
            .device_bytes_per_s
            .map_or_else(String::new, |n| format!(", {}/s from devices", units::bytes(n as u64)));
        let _ = writeln!(
            out,
            "<line class=\"error\" x1=\"{at:.2}%\" y1=\"{:.1}\" x2=\"{at:.2}%\" y2=\"{:.1}\"/>\n\
             <circle class=\"p0\" cx=\"{at:.2}%\" cy=\"{:.1}\" r=\"4\"><title>{size}: {} ± {}{device}</title></circle>",
            y(ratio + error),
            y(ratio - error),
            y(*ratio),
            percent(*ratio),
            percent(*error),
        );
    }
    for point in points {
        below(x(point.scale), &format!("x{}", point.scale), "", out);
    }
    close(std::iter::once(("predicted misses".to_owned(), 0)), out);
}

/// The points as a table; a column of waiting where that was measured.
fn figures(points: &[Scaled], out: &mut String) {
    let waits = points.iter().any(|p| p.waiting.is_some());
    let cell = |value: Option<f64>, text: &dyn Fn(f64) -> String| {
        value.map_or(Cell::Unknown, |n| Cell::Number(text(n), n))
    };
    let percent = |ratio: f64| units::percent(ratio, 1);
    let bytes = |n: f64| units::bytes(n as u64);
    let row = |p: &Scaled| {
        let mut row = vec![
            Cell::Number(format!("x{}", p.scale), p.scale),
            cell(p.size_bytes.map(|n| n as f64), &bytes),
            cell(p.miss_ratio, &percent),
            cell(p.error, &|error| format!("± {}", percent(error))),
            cell(p.device_bytes_per_s, &|n| format!("{}/s", bytes(n))),
        ];
        if waits {
            row.push(cell(p.waiting, &|n| format!("{n:.2}")));
        }
        row
    };
    let titles = ["relative to now", "size", "misses", "error", "from devices", "threads waiting"];
    let rows: Vec<Vec<Cell>> = points.iter().map(row).collect();
    table::show("whatif", &titles[..if waits { 6 } else { 5 }], &rows, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatif::Scaled;

    #[test]
    fn points_lie_where_they_belong() {
        let point = |scale, miss_ratio: Option<f64>| Scaled {
            scale,
            size_bytes: Some(1 << 20),
            miss_ratio,
            error: miss_ratio.map(|_| 0.0),
            ..Scaled::default()
        };
        let curve = Some(vec![point(0.5, Some(0.5)), point(1.0, Some(0.25)), point(2.0, None)]);
        let what_if = Prediction { cgroup: Some("/<x>".into()), curve, ..Prediction::default() };
        let mut out = String::new();
        show(&what_if, &mut out);
        assert!(out.contains("Cache: /&lt;x&gt;</p>"), "{out}");
        assert_eq!((out.matches("<circle").count(), out.matches("class=\"curve\"").count()), (2, 1), "{out}");
        assert!(out.contains("cy=\"0.0\"") && out.contains("cy=\"80.0\""), "{out}");
        assert!(out.contains(">x2</text>") && out.contains("50.0 %"), "{out}");
        assert!(
            out.contains(">50.0 %</td>") && out.contains(">x2</td>") && !out.contains("waiting"),
            "{out}"
        );
        let reason = Some("not enough seen".to_owned());
        let mut out = String::new();
        show(&Prediction { curve: None, reason, ..what_if }, &mut out);
        assert!(
            out.contains("No prediction: not enough seen.</p>")
                && !out.contains("<svg")
                && !out.contains("<table"),
            "{out}"
        );
    }
}
