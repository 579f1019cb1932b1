//! The help and the list of columns.

use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span;

use super::theme::Theme;
use crate::text::wrap::wrapped;
use crate::top::app::App;
use crate::top::cells;
use crate::top::keys;
use crate::top::settings::Sort;

/// Where the texts of the list of columns begin.
const ABOUT: usize = 16;
/// The width of a key with what it does: two of them fit into 80 columns.
const CELL: usize = 40;

/// The help: what rows can stand for and the keys, from their table, and below what a screen of 24 lines holds, what the
/// figures mean.
pub(super) fn help(theme: &Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let title = |text: &'static str| Line::styled(text, theme.strong());
    let mut out = vec![title("Nine kinds of rows: who does it, and on what (Tab: the next one)")];
    out.extend(beside(theme, &keys::views().collect::<Vec<_>>(), (width / CELL).clamp(1, 4)));
    out.push(title("Keys (q quits, Up Down PgDn scroll, any other key closes this help)"));
    out.extend(beside(theme, &keys::others().collect::<Vec<_>>(), (width / CELL).clamp(1, 4)));
    out.push(title("Function keys"));
    let functions = keys::functions().map(|(key, about)| format!("{key} {about}"));
    out.extend(lines_of(&functions.collect::<Vec<_>>().join("  "), width));
    out.push(title("Figures (Down goes on)"));
    for text in [
        "HITS pages read that were cached and used before. RAHITS first uses of pages that read-ahead had \
         fetched. MISSES pages read that were not cached. READ_HIT% is HITS of all three.",
        "WRITE_HIT% pages written that were cached. DIRTIES pages that went from clean to dirty. DIRECT bytes \
         that bypassed the cache. '-' cannot be known, or is a ratio of nothing.",
        "Colours are values: from red by yellow to green for a part of hits, the redder the larger a part of all \
         misses a row has. Without colours the bad ones are bold. SHARE is a row's part of all that was done.",
        "A dimmed row with x has ended; its figures are those of its last interval. 'cachetop --help' says more.",
    ] {
        out.extend(lines_of(text, width));
    }
    out
}

fn lines_of(text: &str, width: usize) -> Vec<Line<'static>> {
    wrapped(text, width.clamp(20, 118)).into_iter().map(Line::raw).collect()
}

/// Keys and what they do, in so many columns, from above to below.
fn beside(theme: &Theme, all: &[(&'static str, &'static str)], columns: usize) -> Vec<Line<'static>> {
    let lines = all.len().div_ceil(columns);
    let line = |i: usize| {
        let mut line = Line::default();
        for (key, about) in all.iter().skip(i).step_by(lines) {
            line.push_span(Span::styled(format!("{key:<10}"), theme.key()));
            line.push_span(format!(" {about:<width$}", width = CELL - 11));
        }
        line
    };
    (0..lines).map(line).collect()
}

/// The list of columns, and its first line on the screen.
pub(super) fn columns(app: &App, theme: &Theme, at: usize, area: Rect) -> (Vec<Line<'static>>, usize) {
    let mut out = vec![Line::styled(format!("Columns   {}", keys::COLUMN_KEYS), theme.strong())];
    let room = usize::from(area.width).saturating_sub(ABOUT).max(12);
    let mut last = 0;
    for (i, (column, shown)) in app.all_columns().into_iter().enumerate() {
        let mark = if shown { "[x]" } else { "[ ]" };
        let sort = if app.settings.sort == Sort::Column(column) { "*" } else { " " };
        let style = if i == at { theme.selected() } else { ratatui::style::Style::new() };
        let mut name = format!("{mark}{sort}{:<11}", cells::title(column));
        for line in wrapped(column.about(), room) {
            out.push(Line::from(Span::styled(format!("{name:<width$}{line}", width = ABOUT), style)));
            name.clear();
        }
        if i == at {
            last = out.len();
        }
    }
    // The selected one is seen as a whole.
    let first = last.saturating_sub(usize::from(area.height).max(2));
    (out, first)
}
