//! What came of `--try`.

use super::page::Page;
use super::page::Row;
use crate::report::Report;
use crate::report::trial::Count;
use crate::report::trial::Outcome;
use crate::report::units;
use crate::text::foreign;

pub(super) fn show(report: &Report, page: &mut Page) {
    let (Some(outcome), [first, second, ..]) = (&report.trial, report.runs.as_slice()) else { return };
    page.gap();
    let before: Vec<String> = outcome.devices.iter().map(|d| d.before_kb.to_string()).collect();
    let heads = ["run 1", "predicted", "run 2", "RANDOM", "SEQUENTIAL"].map(String::from);
    let mut table = vec![Row::new("read-ahead tried", heads.to_vec())];
    let (was, now) = (before.join(", "), outcome.read_ahead_kb.to_string());
    let settings = vec![was.clone(), now.clone(), now, was.clone(), was];
    table.push(Row::new("  read_ahead_kb", settings));
    let unit = page.style.unit;
    let pages = |n: u64| units::volume(n, unit);
    let p = outcome.predicted;
    let columns = [
        Some(outcome.counted[0]),
        p.map(|p| p.tried),
        Some(outcome.counted[1]),
        p.map(|p| p.random),
        p.map(|p| p.sequential),
    ];
    let mut row = |name: &str, of: &dyn Fn(&Count) -> Option<String>| {
        let cells = columns.iter().map(|c| c.as_ref().and_then(of).unwrap_or_else(|| "-".into())).collect();
        table.push(Row::new(name, cells));
    };
    row("  fetched", &|c| Some(pages(c.fetched)));
    row("  used", &|c| Some(pages(c.used)));
    row("  wasted", &|c| Some(pages(c.wasted)));
    row("  calls that waited", &|c| c.waits.map(units::count));
    let runs = |name: &str, of: [Option<String>; 2]| {
        let [a, b] = of.map(|cell| cell.unwrap_or_else(|| "-".into()));
        Row::new(name, vec![a, String::new(), b])
    };
    if outcome.elsewhere.iter().any(|n| n.is_none_or(|n| n > 0)) {
        table.push(runs("  of mapped and other files", outcome.elsewhere.map(|n| n.map(pages))));
    }
    let data = |n: Option<u64>| n.map(|n| page.bytes(n));
    let device = [first.usage.device_read_bytes, second.usage.device_read_bytes].map(data);
    table.push(runs("  read from devices", device));
    let waited = [first, second].map(|r| r.waits.read_ns.map(units::seconds));
    table.push(runs("  waiting in reads", waited));
    table.push(runs("  wall", [first, second].map(|r| Some(units::wall(r.wall_s)))));
    page.table(&table);
    page.wrapped("  ", &judgement(outcome));
    for doubt in &outcome.doubts {
        page.wrapped("  not to be believed: ", doubt);
    }
    for change in &outcome.devices {
        let path = foreign::line(&change.path);
        let said = match &change.note {
            Some(note) => format!("{path} was {}, and is not put back: {note}", change.before_kb),
            None if change.restored => format!("{path} is {} again", change.before_kb),
            None => format!("{path} was {}; it is not known what it is now", change.before_kb),
        };
        page.wrapped("  ", &said);
    }
}

/// How good the prediction was.
fn judgement(outcome: &Outcome) -> String {
    let percent = |share: f64| units::percent(share, 1);
    let (Some(error), Some(by)) = (outcome.error, outcome.missed_by) else {
        return "nothing is predicted, or nothing was fetched".into();
    };
    format!(
        "run 2 fetched what was predicted but for {}; with the setting that it had, run 1 is simulated but for {}",
        percent(by),
        percent(error)
    )
}
