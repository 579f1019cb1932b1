//! The last line: keys, or a message.

use ratatui::Frame;
use ratatui::text::Line;
use ratatui::text::Span;

use super::theme::Theme;
use crate::text::width::at_a_word;
use crate::top::app::App;
use crate::top::app::Mode;
use crate::top::keys;
use crate::top::zones::Zones;

/// What is to be said now.
pub(super) fn message(app: &App) -> Option<String> {
    app.stopped.clone().or_else(|| app.message.as_ref().map(|(text, _)| text.clone()))
}

/// Draws it.
pub(super) fn draw(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    let area = zones.foot;
    if area.height == 0 {
        return;
    }
    let writing = match app.mode {
        Mode::Filter => Some("text  !not  a|b  ~regular.expression  misses>100    Enter keep  Esc drop"),
        Mode::Search => Some("text, as in a filter    F3 Down the next one  Enter Esc done"),
        _ => None,
    };
    let line = match (message(app), writing) {
        (Some(text), _) => Line::styled(theme.text(&at_a_word(&text, area.width.into())), theme.warning()),
        (None, Some(text)) => Line::styled(text, theme.dim()),
        (None, None) => hints(app, theme, area.width.into()),
    };
    frame.buffer_mut().set_line(area.x, area.y, &line, area.width);
}

fn hints(app: &App, theme: &Theme, width: usize) -> Line<'static> {
    let mut line = Line::default();
    let mut x = 0;
    for (begin, (key, about, _)) in keys::hints(width, app.scene.replay.is_some()) {
        line.push_span(" ".repeat(begin - x));
        let arrows = [("\u{2190} \u{2192}", "< >")].into_iter().find(|(sign, _)| *sign == key);
        let key = arrows.filter(|_| !theme.unicode).map_or(key, |(_, plain)| plain);
        line.push_span(Span::styled(key, theme.strong()));
        // A function is marked, a letter has its word beside it.
        let style = if about.starts_with(' ') { theme.dim() } else { theme.label() };
        line.push_span(Span::styled(about, style));
        x = begin + key.chars().count() + about.len();
    }
    line
}
