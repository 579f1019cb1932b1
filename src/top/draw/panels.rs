//! Borders, where there is room for them: one frame for all panels, so that each costs one line.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::theme::Theme;
use crate::top::app::App;
use crate::top::app::Mode;
use crate::top::zones::Zones;

/// Draws them, and the titles that do not depend on what is counted.
pub(super) fn draw(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    if !zones.framed() {
        return;
    }
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let help = matches!(app.mode, Mode::Help(_));
    let table = matches!(app.mode, Mode::Table | Mode::Filter | Mode::Search);
    // Below the rows are the keys; a page goes on to the end.
    let last = if table { zones.bottom.y } else { area.bottom() - 1 };
    let [side, ..] = theme.corners(0);
    for y in 1..last {
        for x in [0, area.right() - 1] {
            buffer.set_string(x, y, side, theme.dim());
        }
    }
    line(theme, 0, area, 0, buffer);
    line(theme, 2, area, last, buffer);
    if help {
        title(theme, zones, 0, &Line::styled("help", theme.strong()), buffer);
        return;
    }
    line(theme, 1, area, zones.rule.y, buffer);
    let text = match app.mode {
        Mode::Columns(_) => "columns",
        Mode::Details(_) => "details",
        _ if app.scene.only.is_empty() => "the system, per second",
        _ => "what these do, per second",
    };
    title(theme, zones, zones.rule.y, &Line::styled(text, theme.strong()), buffer);
    if table {
        line(theme, 1, area, zones.status.y, buffer);
    }
}

/// A line from side to side: the first, one between, the last.
fn line(theme: &Theme, which: usize, area: Rect, y: u16, buffer: &mut Buffer) {
    let [_, left, right] = theme.corners(which);
    let between = theme.rule().repeat(usize::from(area.width).saturating_sub(2));
    buffer.set_string(0, y, format!("{left}{between}{right}"), theme.dim());
}

/// A title, in the border or before the line that stands for it.
pub(super) fn title(theme: &Theme, zones: &Zones, y: u16, text: &Line<'_>, buffer: &mut Buffer) {
    let area = zones.status;
    let end = u16::try_from(text.width()).unwrap_or(u16::MAX).min(area.width);
    if zones.framed() {
        buffer.set_string(area.x - 1, y, " ", theme.dim());
        buffer.set_stringn(area.x + end, y, " ", usize::from(area.width - end + 1), theme.dim());
    } else {
        let rule = theme.rule().repeat(usize::from((area.width - end).saturating_sub(1)));
        buffer.set_stringn(area.x + end, y, format!(" {rule}"), usize::from(area.width - end), theme.dim());
    }
    // Styles are added to what is there, and a border is dim.
    buffer.set_style(Rect::new(area.x, y, end, 1), Style::reset());
    buffer.set_line(area.x, y, text, area.width);
}
