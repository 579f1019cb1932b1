//! From the state to a screen. Nothing is kept here, and nothing is asked of the outside world.

pub mod heat;
pub mod theme;

mod charts;
mod details;
mod foot;
mod head;
mod pages;
mod panels;
mod rows;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::text::apart::settle;
use crate::top::app::App;
use crate::top::app::Mode;
use crate::top::links::Link;
use theme::Theme;

/// Draws everything.
pub fn draw(app: &App, theme: &Theme, frame: &mut Frame<'_>) {
    all(app, theme, frame);
    settle(frame.buffer_mut());
}

fn all(app: &App, theme: &Theme, frame: &mut Frame<'_>) {
    // The terminal got another size in this moment, so that nothing would be where it belongs: the event that says so is on
    // its way, and a frame with it.
    if (frame.area().width, frame.area().height) != app.size {
        return;
    }
    let zones = app.zones();
    panels::draw(app, theme, &zones, frame);
    if let Mode::Help(line) = app.mode {
        page(zones.whole, &pages::help(theme, zones.whole), line, frame);
        return;
    }
    head::draw(app, theme, &zones, frame);
    match app.mode {
        Mode::Table | Mode::Filter | Mode::Search => {
            rows::draw(app, theme, &zones, frame);
            head::status(app, theme, &zones, frame);
            foot::draw(app, theme, &zones, frame);
        }
        Mode::Help(_) => {}
        Mode::Columns(at) => {
            let (lines, line) = pages::columns(app, theme, at, zones.page);
            page(zones.page, &lines, line, frame);
        }
        Mode::Details(line) => page(zones.page, &details::page(app, theme).all, line, frame),
    }
}

fn page(area: Rect, lines: &[Line<'_>], first: usize, frame: &mut Frame<'_>) {
    // What is shown may have become shorter since it was scrolled.
    let first = first.min(lines.len().saturating_sub(area.height.into()));
    for (line, y) in lines.iter().skip(first).zip(area.y..area.bottom()) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

/// What can be chosen on the page of details, and on which of its lines.
#[must_use]
pub fn links(app: &App) -> Vec<(Link, usize)> {
    details::page(app, &Theme::plain()).places
}

/// On which line of the page of details it is told what is predicted of another size, if that is asked.
#[must_use]
pub fn asked(app: &App) -> Option<usize> {
    details::page(app, &Theme::plain()).asked
}

/// The furthest that a page can be scrolled.
#[must_use]
pub fn last_line(app: &App) -> usize {
    let theme = Theme::plain();
    let zones = app.zones();
    let (lines, area) = match app.mode {
        Mode::Help(_) => (pages::help(&theme, zones.whole).len(), zones.whole),
        Mode::Details(_) => (details::page(app, &theme).all.len(), zones.page),
        _ => return 0,
    };
    lines.saturating_sub(area.height.into())
}
