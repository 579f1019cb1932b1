//! What came of `--try`, as tables that sort.

use std::fmt::Write as _;

use super::escape::escape;
use super::table;
use super::table::Cell;
use crate::report::Report;
use crate::report::trial::Count;
use crate::report::trial::FileOutcome;
use crate::report::trial::Share;
use crate::report::trial::Sized;
use crate::report::trial::shown;
use crate::report::units;
use crate::text::foreign;
use crate::text::numbers::Unit;

impl From<shown::Cell> for Cell {
    fn from(cell: shown::Cell) -> Self {
        match cell {
            shown::Cell::Figure(text, n) => Cell::Number(text, n),
            shown::Cell::Unknown => Cell::Unknown,
            shown::Cell::Nothing => Cell::Nothing,
        }
    }
}

fn pages(n: Option<u64>, unit: Unit) -> Cell {
    shown::pages(n, unit).into()
}

/// The section; nothing where nothing was tried.
pub(super) fn show(report: &Report, out: &mut String) {
    let (Some(outcome), [first, second, ..]) = (&report.trial, report.runs.as_slice()) else { return };
    let unit = first.unit;
    let _ = writeln!(out, "<h2>Read-ahead of {} KiB, tried</h2>", outcome.read_ahead_kb);
    let rows = shown::rows(outcome, [first, second], unit)
        .into_iter()
        .map(|(name, cells)| std::iter::once(Cell::Text(name.into())).chain(cells.map(Cell::from)).collect());
    let rows: Vec<Vec<Cell>> = rows.collect();
    let titles: Vec<&str> =
        std::iter::once("of files that were read, not mapped").chain(shown::COLUMNS).collect();
    table::show("trial", &titles, &rows, out);
    let _ = writeln!(out, "<p class=\"about\">{}.</p>", escape(&shown::judgement(outcome)));
    for doubt in &outcome.doubts {
        let _ = writeln!(out, "<p class=\"about\">Not to be believed: {}.</p>", escape(doubt));
    }
    for change in &outcome.devices {
        let _ = writeln!(out, "<p class=\"about\">{}.</p>", escape(&shown::became(change)));
    }
    windows(&outcome.windows, unit, out);
    files(&outcome.files, unit, out);
}

/// Windows by size, as they were and as they are with what is tried: both are simulated.
fn windows(all: &[Sized], unit: Unit, out: &mut String) {
    if all.is_empty() {
        return;
    }
    out.push_str(
        "<h3>Windows by size</h3>\n<p class=\"about\">Simulated; late is how often a run waited for such pages while they \
         were on their way.</p>\n",
    );
    let row = |s: &Sized| {
        let size = match s.pages {
            1 => Cell::Number("as asked for".into(), 1.0),
            n => Cell::Number(units::volume(n, unit), n as f64),
        };
        let late = |n: u64| Cell::Number(units::count(n), n as f64);
        let of = |s: &Share| {
            [pages(Some(s.pages), unit), pages(Some(s.used), unit), s.late.map_or(Cell::Unknown, late)]
        };
        std::iter::once(size).chain(of(&s.as_it_was)).chain(of(&s.tried)).collect()
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    let titles =
        ["from", "fetched, as it was", "used", "late in run 1", "fetched, as tried", "used", "late in run 2"];
    table::show("trial", &titles, &rows, out);
}

/// The files of which most was fetched.
fn files(all: &[FileOutcome], unit: Unit, out: &mut String) {
    if all.is_empty() {
        return;
    }
    out.push_str("<h3>Files, read with both</h3>\n");
    let row = |f: &FileOutcome| {
        let name =
            f.path.as_ref().map_or_else(|| format!("inode {} of {}", f.inode, f.dev), ToString::to_string);
        let [first, second] = f.counted;
        let fetched = |c: Option<Count>| pages(c.map(|c| c.fetched), unit);
        let wasted = |c: Option<Count>| pages(c.and_then(|c| c.wasted), unit);
        let tried = f.predicted.tried;
        vec![
            Cell::Code(foreign::line(&name).into_owned()),
            fetched(first),
            wasted(first),
            fetched(Some(tried)),
            wasted(Some(tried)),
            fetched(second),
            wasted(second),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let titles = [
        "file",
        "run 1 fetched",
        "wasted",
        "predicted",
        "wasted as predicted",
        "run 2 fetched",
        "wasted in run 2",
    ];
    table::show("trial", &titles, &rows, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::Run;
    use crate::report::trial;

    #[test]
    fn what_was_tried_stands_on_the_page() {
        let mut outcome = trial::example();
        outcome.files[0].path = Some("/<b>\u{202e}".into());
        outcome.files[0].counted[1] = outcome.files[0].counted[1].map(|c| Count { wasted: None, ..c });
        let run = |number| Run { number, wall_s: 1.5, ..Run::default() };
        let report = Report { trial: Some(outcome), runs: vec![run(1), run(2)], ..Report::default() };
        let mut out = String::new();
        show(&report, &mut out);
        assert!(out.contains("Read-ahead of 4096 KiB, tried</h2>"), "{out}");
        assert!(out.contains("/&lt;b&gt;\\u{202e}") && !out.contains("<b>\u{202e}"), "{out}");
        assert!(out.contains("<td data-t=\"wasted in run 2\">-</td>"), "{out}");
        assert!(out.contains("Not to be believed: 1 request came"), "{out}");
        assert_eq!(out.matches("<table").count(), 3, "{out}");
        assert_eq!(out.matches("<p ").count(), out.matches("</p>").count());
        let mut nothing = String::new();
        show(&Report { runs: vec![run(1), run(2)], ..Report::default() }, &mut nothing);
        assert!(nothing.is_empty());
    }
}
