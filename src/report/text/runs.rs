//! Several runs side by side, and where the difference in time went.

use super::line;
use super::wrapped;
use crate::report::Report;
use crate::report::compare;
use crate::report::compare::Difference;
use crate::report::compare::Line;
use crate::report::groups;
use crate::report::units;

/// Runs that are shown in columns of their own.
const COLUMNS: usize = 5;

pub(super) fn show(report: &Report, out: &mut String) {
    let runs = &report.runs;
    super::groups::show(report, out);
    if runs.len() > 1 {
        let shown: Vec<_> = runs.iter().take(COLUMNS).collect();
        let heads: String = shown.iter().map(|r| format!("{:>11}", format!("run {}", r.number))).collect();
        line(out, &format!("{:<20}{heads}", "runs"));
        for row in compare::LINES {
            let cells: String = shown.iter().map(|r| format!("{:>11}", row.show(r))).collect();
            line(out, &format!("  {:<18}{cells}", row.name));
        }
        if runs.len() > COLUMNS {
            line(out, &format!("  and {} more", runs.len() - COLUMNS));
        }
    }
    if let Some(old) = &report.compared {
        line(out, &format!("compared with {} ({})", old.path, old.about));
        super::groups::saved(&old.groups, out);
        for (then, now) in groups::same(&old.groups, &report.groups) {
            let id = if report.groups.len() > 1 { now.id() } else { String::new() };
            line(out, &format!("{id:<20}{:>11}{:>11}", "then", "now"));
            for row in compare::LINES {
                let cells = (Line::show(row, &then.mean), row.show(&now.mean));
                line(out, &format!("  {:<18}{:>11}{:>11}", row.name, cells.0, cells.1));
            }
        }
    }
    for d in &report.differences {
        difference(d, out);
    }
}

fn difference(d: &Difference, out: &mut String) {
    line(out, &format!("\n{}: {} s of wall time", d.title, units::change(d.wall_s)));
    for part in &d.parts {
        let seconds = part.seconds.map_or_else(|| "-".into(), units::change);
        let share = part.share.map_or_else(|| "-".into(), |s| units::percent(s, 0));
        line(out, &format!("  {:<24}{seconds:>10} s {share:>8}", part.name));
    }
    for note in &d.notes {
        wrapped(out, "  ", note);
    }
}
