//! The table: only the rows that are seen are made.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::theme::Theme;
use crate::top::app::App;
use crate::top::table::Look;
use crate::top::table::Slot;
use crate::top::zones::Zones;

/// Draws it.
pub(super) fn draw(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    let layout = app.layout();
    let look = Look { layout: &layout, by: app.by(), numbers: app.numbers() };
    titles(app, theme, &look, zones.titles, frame);
    let area = zones.rows;
    if app.snapshot.is_none() {
        let text = "waiting for the first interval to end";
        frame.buffer_mut().set_stringn(0, area.y, text, area.width.into(), theme.dim());
        return;
    }
    if app.slots.is_empty() && area.height > 0 {
        let text = match app.filter.is_empty() {
            true => "nothing happened in this interval",
            false => "no row is taken by the filter: Esc drops it",
        };
        frame.buffer_mut().set_stringn(0, area.y, text, area.width.into(), theme.dim());
    }
    let seen = app.slots.iter().enumerate().skip(app.offset);
    for ((at, slot), y) in seen.zip(area.y..area.bottom()) {
        let Some((row, state)) = app.row(*slot) else { continue };
        let mark = match slot {
            Slot::Thread(_, last) => theme.branch(*last),
            Slot::Entry(_) if state.is_over() => "x ",
            Slot::Entry(_) => "",
        };
        let entry = app.entry(*slot);
        let line = entry.filter(|_| app.by() == crate::pivot::By::Process && row.who.tid.is_none());
        let line = line.and_then(|e| app.argv.get(&e.named.who));
        let together =
            entry.and_then(|e| e.ended).map(|n| if n > 1 { format!("{n}x ") } else { "x ".into() });
        let mark = together.as_deref().unwrap_or(mark);
        let look = Look { numbers: look.numbers.of(entry.and_then(|e| e.seconds)), ..look };
        let text = theme.text(&look.with_line(&row, mark, line));
        let mut style = if state.is_over() { theme.dim() } else { ratatui::style::Style::new() };
        if app.selected.is_some() && at == app.at {
            style = style.patch(theme.selected());
        }
        let buffer = frame.buffer_mut();
        buffer.set_style(Rect::new(0, y, area.width, 1), style);
        buffer.set_stringn(0, y, text, area.width.into(), style);
    }
}

fn titles(app: &App, theme: &Theme, look: &Look<'_>, area: Rect, frame: &mut Frame<'_>) {
    if area.height == 0 {
        return;
    }
    let (text, places) = look.titles();
    let buffer = frame.buffer_mut();
    buffer.set_style(area, theme.titles());
    buffer.set_stringn(0, area.y, text, area.width.into(), theme.titles());
    for (begin, end, sort) in places {
        if sort != app.settings.sort {
            continue;
        }
        let begin = u16::try_from(begin).unwrap_or(u16::MAX).min(area.width);
        let end = u16::try_from(end).unwrap_or(u16::MAX).min(area.width);
        let style = theme.titles().patch(theme.sorted());
        buffer.set_style(Rect::new(begin, area.y, end - begin, 1), style);
    }
}
