//! What came of `--try` as rows and sentences, for text and for HTML.

use super::Change;
use super::Count;
use super::Outcome;
use crate::report::data::Run;
use crate::report::units;
use crate::text::foreign;
use crate::text::numbers::Unit;

/// What the columns are.
pub const COLUMNS: [&str; 5] = ["run 1", "predicted", "run 2", "RANDOM", "SEQUENTIAL"];

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A figure, and what it is sorted by.
    Figure(String, f64),
    /// It is not known.
    Unknown,
    /// There is no such thing.
    Nothing,
}

impl Cell {
    /// As it stands in text.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Cell::Figure(text, _) => text,
            Cell::Unknown => "-".into(),
            Cell::Nothing => String::new(),
        }
    }
}

fn whole(text: String, n: u64) -> Cell {
    Cell::Figure(text, n as f64)
}

/// A number of pages, or what they hold.
#[must_use]
pub fn pages(n: Option<u64>, unit: Unit) -> Cell {
    n.map_or(Cell::Unknown, |n| whole(units::volume(n, unit), n))
}

/// Rows: a name, and a cell for each of [`COLUMNS`].
#[must_use]
pub fn rows(outcome: &Outcome, [first, second]: [&Run; 2], unit: Unit) -> Vec<(&'static str, [Cell; 5])> {
    let before: Vec<String> = outcome.devices.iter().map(|d| d.before_kb.to_string()).collect();
    let was = whole(before.join(", "), outcome.devices.first().map_or(0, |d| d.before_kb));
    let now = whole(outcome.read_ahead_kb.to_string(), outcome.read_ahead_kb);
    let p = outcome.predicted;
    let columns = [
        Some(outcome.counted[0]),
        p.map(|p| p.tried),
        Some(outcome.counted[1]),
        p.map(|p| p.random),
        p.map(|p| p.sequential),
    ];
    let row = |of: &dyn Fn(&Count) -> Cell| columns.each_ref().map(|c| c.as_ref().map_or(Cell::Unknown, of));
    let runs = |[a, b]: [Cell; 2]| [a, Cell::Nothing, b, Cell::Nothing, Cell::Nothing];
    let calls = |n: u64| whole(units::count(n), n);
    let mut out = vec![
        ("read_ahead_kb", [was.clone(), now.clone(), now, was.clone(), was]),
        ("fetched", row(&|c| pages(Some(c.fetched), unit))),
        ("used", row(&|c| pages(c.used, unit))),
        ("wasted", row(&|c| pages(c.wasted, unit))),
        ("calls that missed", row(&|c| c.waits.map_or(Cell::Unknown, calls))),
    ];
    if outcome.elsewhere.iter().any(|n| n.is_none_or(|n| n > 0)) {
        out.push(("of mapped and other files", runs(outcome.elsewhere.map(|n| pages(n, unit)))));
    }
    let bytes = |n: u64| match unit {
        Unit::Pages => whole(units::pages_of(n), n),
        Unit::Bytes => whole(units::bytes(n), n),
    };
    let device = [first, second].map(|r| r.usage.device_read_bytes.map_or(Cell::Unknown, bytes));
    out.push(("read from devices", runs(device)));
    let waited = |ns: u64| whole(units::seconds(ns), ns);
    out.push((
        "waiting in reads",
        runs([first, second].map(|r| r.waits.read_ns.map_or(Cell::Unknown, waited))),
    ));
    let wall = |r: &Run| Cell::Figure(units::wall(r.wall_s), r.wall_s);
    out.push(("wall", runs([first, second].map(wall))));
    out
}

/// How good the prediction was.
#[must_use]
pub fn judgement(outcome: &Outcome) -> String {
    let percent = |share: f64| units::percent(share, 1);
    let (Some(error), Some(by)) = (outcome.error, outcome.missed_by) else {
        let why = match (outcome.predicted, outcome.counted.map(|c| c.fetched)) {
            (None, _) => "nothing is predicted",
            _ if outcome.is_of_another_setting() => {
                "the setting was changed while run 2 ran: what was predicted is not compared with what it fetched"
            }
            _ if outcome.first_is_of_two_settings() => {
                "the setting was changed while run 1 ran: what was predicted of it is not compared with what run 2 fetched"
            }
            (_, [0, _]) => "run 1 fetched nothing of the files that are predicted",
            (_, [_, 0]) => "run 2 fetched nothing of the files that are predicted",
            _ => "run 2 did not do what run 1 did: what was predicted is not compared with what it fetched",
        };
        return why.into();
    };
    if outcome.is_of_little() {
        return "little is predicted: most of what was fetched came by other ways than read calls".into();
    }
    format!(
        "run 2 fetched what was predicted but for {}; with the setting that it had, run 1 is simulated but for {}",
        percent(by),
        percent(error)
    )
}

/// What became of a setting.
#[must_use]
pub fn became(change: &Change) -> String {
    let path = foreign::line(&change.path);
    match &change.note {
        Some(note) => format!("{path} was {}, and is not put back: {note}", change.before_kb),
        None if change.restored => format!("{path} is {} again", change.before_kb),
        None => format!("{path} was {}; it is not known what it is now", change.before_kb),
    }
}
