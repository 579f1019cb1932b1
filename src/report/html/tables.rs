//! What is no chart: assertions, groups of runs, the state of the cache before a run.

use std::fmt::Write as _;

use super::escape::escape;
use super::table;
use super::table::Cell;
use crate::report::Report;
use crate::report::certificate::Certificate;
use crate::report::data::Run;
use crate::report::groups::Group;
use crate::report::groups::Outlier;
use crate::report::units;
use crate::report::units::count;
use crate::report::units::percent;
use crate::text::numbers::Unit;

/// What came of `--assert`.
pub(super) fn assertions(report: &Report, out: &mut String) {
    if report.assertions.is_empty() {
        return;
    }
    out.push_str("<h2>Assertions</h2>\n");
    let row = |o: &crate::report::assert::Outcome| {
        let which = o.run.map_or_else(String::new, |n| format!("run {n}: "));
        vec![
            Cell::Code(o.expression.clone()),
            Cell::Word(o.result.name()),
            Cell::Text(format!("{which}{}", o.found)),
        ]
    };
    let rows: Vec<_> = report.assertions.iter().map(row).collect();
    table::show("assertions", &["assertion", "result", "figure"], &rows, out);
}

/// Runs that can be taken together; nothing where each group is one run, which is shown as such.
pub(super) fn groups(report: &Report, out: &mut String) {
    let compared = report.compared.iter().flat_map(|then| &then.groups);
    let several = |groups: &[Group]| groups.iter().any(|g| g.runs.len() > 1);
    let then = compared.clone().any(|g| g.runs.len() > 1);
    if report.commands.is_empty() && !several(&report.groups) && !then {
        return;
    }
    out.push_str("<h2>Groups of runs</h2>\n");
    for (label, command) in &report.commands {
        let _ =
            writeln!(out, "<p class=\"about\">{label}: <code>{}</code></p>", escape(&command.to_string()));
    }
    let all = compared.clone().chain(&report.groups);
    let least = all.map(|g| g.wall.mean).fold(f64::INFINITY, f64::min);
    let then = |g: &Group| row(format!("then {}", g.id()), g, Cell::Nothing, least);
    let mut rows: Vec<Vec<Cell>> = compared.map(then).collect();
    for g in &report.groups {
        // How it compares: a command with the first one, else warm runs with cold ones.
        let against = report.comparisons.iter().find(|a| a.group == g.id());
        let factor = against.map_or(Cell::Nothing, |a| {
            Cell::Number(format!("{} (than {})", a.ratio.words(), a.reference), a.ratio.factor)
        });
        rows.push(row(g.id(), g, factor, least));
    }
    let titles =
        ["group", "runs", "mean ± σ", "minimum", "maximum", "outliers", "× as fast", "cached of its use"];
    // A column in which nothing can stand is left out.
    let mut titles = titles.to_vec();
    for column in (0..titles.len()).rev() {
        if rows.iter().all(|r| matches!(r.get(column), Some(Cell::Nothing))) {
            titles.remove(column);
            for row in &mut rows {
                row.remove(column);
            }
        }
    }
    table::show("groups", &titles, &rows, out);
}

fn row(name: String, g: &Group, factor: Cell, least: f64) -> Vec<Cell> {
    let wall = &g.wall;
    // One unit for all, by the shortest.
    let (scale, digits, unit) = if least < 0.0995 { (1e3, 1, "ms") } else { (1.0, 3, "s") };
    let time = |x: f64| format!("{:.digits$}", x * scale);
    let error = wall.deviation.map_or_else(String::new, |d| format!(" ± {}", time(d)));
    let one = |x: f64| Cell::Number(format!("{} {unit}", time(x)), x);
    let (runs, far) = (g.runs.len() as f64, g.outliers.len() as f64);
    vec![
        Cell::Text(name),
        Cell::Number(g.runs.len().to_string(), runs),
        Cell::Number(format!("{}{error} {unit}", time(wall.mean)), wall.mean),
        one(wall.least),
        one(wall.most),
        Cell::Number(outliers(&g.outliers), far),
        factor,
        g.cached_before().map_or(Cell::Unknown, |s| Cell::Number(percent(s, 0), s)),
    ]
}

fn outliers(all: &[Outlier]) -> String {
    const NAMED: usize = 3;
    let mut named: Vec<String> =
        all.iter().take(NAMED).map(|o| format!("run {} ({})", o.run, units::wall(o.wall_s))).collect();
    if all.len() > NAMED {
        named.push(format!("{} more", all.len() - NAMED));
    }
    if named.is_empty() { "none".into() } else { named.join(", ") }
}

/// The state of the cache that the run was made in: in a sentence, and item by item.
pub(super) fn certificate(run: &Run, out: &mut String) {
    let Some(c) = &run.certificate else { return };
    let _ = writeln!(out, "<p class=\"certificate\">{}.</p>", escape(&c.line(run.unit)));
    out.push_str("<table class=\"items\"><tbody>\n");
    for (what, value) in items(c, run.unit) {
        let _ = writeln!(out, "<tr><th scope=\"row\">{what}</th><td>{}</td></tr>", escape(&value));
    }
    out.push_str("</tbody></table>\n");
    for more in c.before.why.iter().chain(&c.others.why) {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", escape(more));
    }
}

/// What is known, and `-` for what is not; what cannot be said of this run is left out.
fn items(c: &Certificate, unit: Unit) -> Vec<(&'static str, String)> {
    let bytes = |n| units::volume_of_bytes(n, unit);
    let known = |n: Option<u64>| n.map_or_else(|| "-".into(), bytes);
    let between = |least: Option<String>, most: Option<String>| match (least, most) {
        (Some(least), Some(most)) if least == most => least,
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "-".into(),
    };
    let before = &c.before;
    let mut out = vec![("files it used", count(before.files))];
    if before.files > 0 {
        if before.files_unknown > 0 {
            out.push(("of these not known", count(before.files_unknown)));
        }
        let share = |s: Option<f64>| s.map(|s| percent(s, 1));
        let amount = |n: Option<u64>| n.map(bytes);
        out.push(("their size", bytes(before.bytes)));
        let (least, most) = (before.cached_at_least_bytes, before.cached_at_most_bytes);
        out.push(("of it cached before", between(amount(least), amount(most))));
        out.push(("share cached before", between(share(before.share_at_least), share(before.share_at_most))));
    }
    if let Some(cold) = &c.cold {
        out.push(("emptied before", format!("--cold {}", cold.caches)));
        out.push(("files left, whole machine", bytes(cold.left_file_bytes)));
        out.push(("metadata left, whole machine", bytes(cold.left_metadata_bytes)));
    }
    out.push(("others read", known(c.others.read_bytes)));
    out.push(("others brought in", known(c.others.brought_in_bytes)));
    let past = |n: Option<u64>| match n.filter(|_| c.others.direct_at_least) {
        Some(n) => format!("at least {}", bytes(n)),
        None => known(n),
    };
    out.push(("others read past the cache", past(c.others.direct_read_bytes)));
    out.push(("others wrote past the cache", past(c.others.direct_write_bytes)));
    out.push(("events lost", count(c.lost)));
    out
}
