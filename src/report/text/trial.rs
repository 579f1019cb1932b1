//! What came of `--try`.

use super::files::named;
use super::page::Page;
use super::page::Row;
use crate::report::Report;
use crate::report::trial::FileOutcome;
use crate::report::trial::Share;
use crate::report::trial::Sized;
use crate::report::trial::shown;
use crate::report::units;
use crate::text::foreign;

pub(super) fn show(report: &Report, page: &mut Page) {
    let (Some(outcome), [first, second, ..]) = (&report.trial, report.runs.as_slice()) else { return };
    page.gap();
    let mut table = vec![Row::new("read-ahead tried", shown::COLUMNS.map(String::from).to_vec())];
    for (name, cells) in shown::rows(outcome, [first, second], page.style.unit) {
        let mut cells = cells.map(shown::Cell::text).to_vec();
        // What two runs have alone ends with the second.
        while cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        table.push(Row::new(format!("  {name}"), cells));
    }
    page.table(&table);
    page.wrapped("  ", &shown::judgement(outcome));
    for doubt in &outcome.doubts {
        page.wrapped("  not to be believed: ", doubt);
    }
    for change in &outcome.devices {
        page.wrapped("  ", &shown::became(change));
    }
    // One screen has the answer; this is what it is made of.
    if page.style.verbose {
        windows(&outcome.windows, page);
        files(&outcome.files, page);
    }
}

/// What windows of each size brought in, as it was and as tried: both are simulated.
fn windows(all: &[Sized], page: &mut Page) {
    if all.is_empty() {
        return;
    }
    let unit = page.style.unit;
    page.gap();
    let titles = ["run 1", "used", "late in 1", "tried", "used", "late in 2"].map(String::from).to_vec();
    let mut table = vec![Row::new("windows, simulated", titles)];
    for s in all {
        let name = match s.pages {
            1 => "  as asked for".into(),
            n => format!("  from {}", units::volume(n, unit)),
        };
        let of = |s: &Share| {
            let late = s.late.map_or_else(|| "-".into(), units::count);
            [units::volume(s.pages, unit), units::volume(s.used, unit), late]
        };
        table.push(Row::new(name, of(&s.as_it_was).into_iter().chain(of(&s.tried)).collect()));
    }
    page.table(&table);
}

/// The files of which most was fetched.
fn files(all: &[FileOutcome], page: &mut Page) {
    if all.is_empty() {
        return;
    }
    let unit = page.style.unit;
    page.gap();
    let titles = ["run 1", "wasted", "predicted", "wasted", "run 2", "wasted"].map(String::from).to_vec();
    let name = |f: &FileOutcome| foreign::or(f.path.as_ref(), &format!("[{}] inode {}", f.dev, f.inode));
    let row = |f: &FileOutcome| {
        let counts = [f.counted[0], Some(f.predicted.tried), f.counted[1]];
        let cells = counts.iter().flat_map(|c| [c.map(|c| c.fetched), c.and_then(|c| c.wasted)]);
        cells.map(|n| shown::pages(n, unit).text()).collect()
    };
    let names: Vec<String> = all.iter().map(name).collect();
    named("files, fetched", titles, all.iter().map(row).collect(), &names, page);
}
