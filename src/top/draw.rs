//! From the state to a screen. Nothing is kept here, and nothing is asked of the outside world.

pub mod theme;

mod charts;
mod details;
mod head;
mod pages;
mod rows;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::top::app::App;
use crate::top::app::Mode;
use theme::Theme;

/// Draws everything.
pub fn draw(app: &App, theme: &Theme, frame: &mut Frame<'_>) {
    let zones = app.zones();
    head::draw(app, theme, &zones, frame);
    match app.mode {
        Mode::Table | Mode::Filter => {
            rows::draw(app, theme, &zones, frame);
            head::status(app, theme, &zones, frame);
            head::foot(app, theme, &zones, frame);
        }
        Mode::Help(line) => page(zones.page, &pages::help(theme), line, frame),
        Mode::Columns(at) => {
            let (lines, line) = pages::columns(app, theme, at, zones.page);
            page(zones.page, &lines, line, frame);
        }
        Mode::Details(line) => page(zones.page, &details::lines(app, theme), line, frame),
    }
}

fn page(area: Rect, lines: &[Line<'_>], first: usize, frame: &mut Frame<'_>) {
    for (line, y) in lines.iter().skip(first).zip(area.y..area.bottom()) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

/// The furthest that a page can be scrolled.
#[must_use]
pub fn last_line(app: &App) -> usize {
    let theme = Theme::plain();
    let lines = match app.mode {
        Mode::Help(_) => pages::help(&theme).len(),
        Mode::Details(_) => details::lines(app, &theme).len(),
        _ => 0,
    };
    lines.saturating_sub(app.zones().page.height.into())
}
