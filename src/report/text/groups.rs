//! Means of runs that can be taken together, beside each other.

use super::page::Page;
use crate::report::Report;
use crate::report::data::Run;
use crate::report::export::relative;
use crate::report::groups;
use crate::report::groups::Group;
use crate::report::groups::State;
use crate::report::stats::OUTLIER;
use crate::report::units;

/// What stands beside each other, with what it is called: then and now, means of groups where these matter, else runs.
pub(super) fn columns(report: &Report) -> Vec<(String, &Run)> {
    if let Some(then) = &report.compared {
        let pairs = groups::same(&then.groups, &report.groups);
        // Of one run on either side, the runs are their means.
        if let ([(then, now)], true) =
            (pairs.as_slice(), pairs.iter().any(|(t, n)| t.runs.len() + n.runs.len() > 2))
        {
            return vec![("then".into(), &then.mean), ("now".into(), &now.mean)];
        }
        if pairs.len() > 1 {
            return pairs
                .into_iter()
                .flat_map(|(then, now)| {
                    [(format!("then {}", then.id()), &then.mean), (format!("now {}", now.id()), &now.mean)]
                })
                .collect();
        }
    } else if groups::matter(&report.groups) {
        return report.groups.iter().map(|g| (g.id(), &g.mean)).collect();
    }
    let alone = report.runs.len() == 1;
    let name = |r: &Run| if alone { "now".into() } else { format!("run {}", r.number) };
    let then = report.compared.as_ref().map(|saved| ("then".to_owned(), &saved.run));
    then.into_iter().chain(report.runs.iter().map(|r| (name(r), r))).collect()
}

/// The table; nothing where each group is one run, which is shown among the runs.
pub(super) fn show(report: &Report, page: &mut Page) {
    if report.commands.is_empty() && report.groups.iter().all(|g| g.runs.len() < 2) {
        return;
    }
    page.gap();
    for (label, command) in &report.commands {
        page.line(&format!("{label}: {command}"));
    }
    table(&report.groups, page);
    notes(&report.groups, page);
}

/// The groups of runs that were saved.
pub(super) fn saved(groups: &[Group], page: &mut Page) {
    if groups.iter().any(|g| g.runs.len() > 1) {
        table(groups, page);
    }
}

fn table(groups: &[Group], page: &mut Page) {
    // One unit for all, by the shortest.
    let least = groups.iter().map(|g| g.wall.mean).fold(f64::INFINITY, f64::min);
    let (unit, scale, digits) = if least < 0.1 { ("ms", 1e3, 1) } else { ("s", 1.0, 3) };
    let time = |x: f64| format!("{:.digits$}", x * scale);
    let head = [format!("mean ± σ [{unit}]"), format!("min [{unit}]"), format!("max [{unit}]")];
    page.line(&format!(
        "{:<12}{:>5} {:>18} {:>10} {:>10} {:>13} {:>7}",
        "means", "runs", head[0], head[1], head[2], "relative", "cached"
    ));
    for g in groups {
        let wall = &g.wall;
        let error = wall.deviation.map_or_else(String::new, |d| format!(" ± {}", time(d)));
        let cached = g.cached_before().map_or_else(|| "-".into(), |s| units::percent(s, 0));
        let relative = if groups.len() > 1 { relative(groups, g) } else { String::new() };
        page.line(&format!(
            "  {:<10}{:>5} {:>18} {:>10} {:>10} {relative:>13} {cached:>7}",
            g.id(),
            g.runs.len(),
            format!("{}{error}", time(wall.mean)),
            time(wall.least),
            time(wall.most),
        ));
    }
}

/// The first five of them, and how many more there are.
pub(super) fn few<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 5;
    let named: Vec<String> = all.iter().take(SHOWN).map(name).collect();
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    named.join(", ") + &more
}

/// What may be why runs lie far from the others: a colder cache makes none of them faster.
fn reasons(group: &Group) -> Vec<&'static str> {
    let slow = |o: &&groups::Outlier| o.score > 0.0;
    let mut why = Vec::new();
    if group.outliers.iter().any(|o| slow(&o)) {
        why.push("what else ran then");
    }
    if group.outliers.iter().filter(slow).any(|o| group.runs.first() == Some(&o.run)) {
        why.push("a first run that was colder than the rest");
    }
    if group.outliers.iter().any(|o| !slow(&o)) {
        why.push("more that was cached, or less that ran beside it, where it was faster");
    }
    why
}

fn notes(groups: &[Group], page: &mut Page) {
    for g in groups {
        if !g.outliers.is_empty() {
            let of = |o: &groups::Outlier| format!("run {} ({})", o.run, units::wall(o.wall_s));
            let text = format!(
                "outliers of {}: {} (modified Z-score beyond {OUTLIER:.1}): they are part of the mean; {} may be why.",
                g.id(),
                few(&g.outliers, of),
                reasons(g).join(", or ")
            );
            page.wrapped("  ", &text);
        }
        if !g.left_out.is_empty() {
            let text = format!("left out of {}: run {}", g.id(), few(&g.left_out, u32::to_string));
            page.wrapped("  ", &text);
        }
        // What the name of a group says must be so.
        let cached = g.cached_before().filter(|_| g.mean.asked_pages >= 256);
        let text = match (g.state, cached) {
            (State::Warm, Some(share)) if share < 0.5 => format!(
                "{} may not have been warm: only {} of the pages used are known to have been cached before.",
                g.id(),
                units::percent(share, 0)
            ),
            (State::Cold, Some(share)) if share > 0.1 && g.mean.cold.as_deref() != Some("slab") => format!(
                "{} was not quite cold: {} of the pages used were cached before, as they are in use.",
                g.id(),
                units::percent(share, 0)
            ),
            _ => continue,
        };
        page.wrapped("  ", &text);
    }
}
