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

/// The help: the keys, from their table, and what the figures mean.
pub(super) fn help(theme: &Theme) -> Vec<Line<'static>> {
    let mut out = vec![Line::styled(
        "Keys (q quits, Up and Down scroll, any other key closes this help)",
        theme.strong(),
    )];
    let keys: Vec<_> = keys::lines().collect();
    let half = keys.len().div_ceil(2);
    // Two columns fit into 80.
    for i in 0..half {
        let cell = |i: usize| keys.get(i).map_or_else(String::new, |(k, about)| format!("{k:<10} {about}"));
        out.push(Line::raw(keys_line(&cell(i), &cell(i + half))));
    }
    out.push(Line::raw(""));
    out.push(Line::styled("Figures", theme.strong()));
    for text in [
        "HITS pages read that were cached and used before. RAHITS first uses of pages that read-ahead had \
         fetched. MISSES pages read that were not cached. READ_HIT% is HITS of all three.",
        "WRITE_HIT% pages written that were cached. DIRTIES pages that went from clean to dirty. DIRECT bytes \
         that bypassed the cache. '-' cannot be known, or is a ratio of nothing.",
        "A dimmed row with x has ended; its figures are those of its last interval. 'cachetop --help' says more.",
    ] {
        out.extend(wrapped(text, 78).into_iter().map(Line::raw));
    }
    out
}

fn keys_line(left: &str, right: &str) -> String {
    format!("{left:<40}{right}").trim_end().to_owned()
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
