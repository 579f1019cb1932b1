//! The rest: rows and this one are together what the line above them says.

use std::borrow::Cow;

use super::by::By;
use super::weight::idle;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::model::Interval;
use crate::model::Row;
use crate::model::Who;
use crate::plan::Engine;

/// What the row for the rest is called where others have names.
pub(crate) const OTHER: &str = "(other)";

/// What a row is called: a process that has taken the name of the rest is written in another way.
#[must_use]
pub fn label(name: &str) -> Cow<'_, str> {
    if name == OTHER { format!("\\{name}").into() } else { name.into() }
}

/// Whom the row for the rest is about.
pub(crate) fn nobody() -> Who {
    Who { other: true, ..Who::default() }
}

/// What is left of a line without its rows; a figure that is not known of one of them is not known of the rest either.
pub(crate) fn rest(line: &Figures, shown: &Figures) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        let both = line.get(*figure).zip(shown.get(*figure));
        out.set(*figure, both.and_then(|(line, shown)| line.checked_sub(shown)));
    }
    out
}

/// Both rows together, as the rest; what is not known of one is not known of both.
pub(crate) fn both(a: &Row, b: &Row) -> Row {
    let mut figures = Figures::unknown();
    for figure in Figure::ALL {
        let both = a.figures.get(*figure).zip(b.figures.get(*figure));
        figures.set(*figure, both.map(|(a, b)| a.saturating_add(b)));
    }
    let classic = a.classic.zip(b.classic).map(|(a, b)| a.and(&b));
    let back = a.back.zip(b.back).map(|(a, b)| a.saturating_add(b));
    Row { who: nobody(), figures, classic, back }
}

/// The row for what the rows of an interval leave of the line above them, of which rows can know `line`; `None` where
/// they leave nothing.
pub(super) fn row(interval: &Interval, line: Figures, by: By) -> Option<Row> {
    let mut shown = Figures::unknown();
    for figure in Figure::ALL {
        let sum =
            interval.rows.iter().try_fold(0, |sum: u64, row| sum.checked_add(row.figures.get(*figure)?));
        shown.set(*figure, sum);
    }
    let mut figures = rest(&line, &shown);
    let mut classic = None;
    if by == By::Process {
        let rows = || interval.rows.iter().filter_map(|row| row.classic);
        classic = interval.classic.map(|all| {
            let sum = rows().reduce(|a, b| a.and(&b)).unwrap_or_else(|| all.nothing());
            all.without(&sum)
        });
    }
    if interval.engine == Engine::Classic.name() {
        // The one figure of the contract that both engines count alike.
        let dirtied = classic.and_then(|c| c.get(crate::classic::Counter::BufferDirtied));
        figures.set(Figure::BufferDirtied, dirtied);
    }
    let back = interval.rows.iter().try_fold(0, |sum: u64, row| sum.checked_add(row.back?));
    let back = interval.back.zip(back).and_then(|(line, shown)| line.checked_sub(shown));
    let nothing = idle(&figures) && back.unwrap_or(0) == 0 && classic.is_none_or(|c| c.busy() == 0);
    (!nothing).then(|| Row { who: nobody(), figures, classic, back })
}
