//! What came of `--try`.

use super::page::Page;
use super::page::Row;
use crate::report::Report;
use crate::report::trial::shown;

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
}
