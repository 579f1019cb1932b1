//! The upper part: where it counts, what is in the cache, the figures of the system and their history.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span;

use super::charts;
use super::theme::Theme;
use crate::columns;
use crate::columns::Column;
use crate::live::snapshot::Snapshot;
use crate::text::numbers::Unit;
use crate::text::numbers::decimal;
use crate::top::app::App;
use crate::top::app::Mode;
use crate::top::cells;
use crate::top::filter::Filter;
use crate::top::numbers::differ;
use crate::top::settings::Show;
use crate::top::summary;
use crate::top::table::Slot;
use crate::top::zones::Zones;

/// Where bars begin: behind title and number.
const BARS: u16 = 22;
/// Draws it.
pub(super) fn draw(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    place(app, theme, zones.place, frame);
    let page = matches!(app.mode, Mode::Help(_) | Mode::Columns(_) | Mode::Details(_));
    if page || zones.figures.height == 0 {
        return;
    }
    let Some(snapshot) = &app.snapshot else { return };
    if zones.each == 0 {
        let text = summary::figures(&app.settings, &app.scene, &snapshot.system);
        frame.buffer_mut().set_stringn(0, zones.figures.y, text, zones.figures.width.into(), theme.strong());
        return;
    }
    let numbers = summary::numbers(&app.settings, &app.scene, snapshot.system.seconds);
    let line = columns::Line::from(&snapshot.system);
    // Where there is room, what is not drawn as well.
    const MORE: &[&str] =
        &["read_bytes", "readahead_pages", "fault_misses", "fault_hits", "write_accesses", "buffer_dirtied"];
    let known = |column: &&Column| column.value(&line) != columns::Value::Unknown;
    let more = MORE.iter().filter_map(|id| cells::find(id)).filter(known);
    let series = summary::series(app.scene.engine).iter().filter_map(|id| cells::find(id));
    let area = zones.figures;
    for (column, y) in series.chain(more).zip(area.y..area.bottom()) {
        let (title, text) = summary::figure(column, column.value(&line), numbers);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(0, y, format!("{title:<10}"), area.width.into(), theme.figure(column.id));
        let room = usize::from(area.width.saturating_sub(10));
        buffer.set_stringn(10, y, format!("{text:>10}"), room, theme.strong());
    }
    let room = Rect { x: BARS, width: area.width.saturating_sub(BARS), ..area };
    charts::draw(app, theme, room, frame);
}

fn place(app: &App, theme: &Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let text = theme.text(&format!("cachetop  {}", summary::place(&app.settings, &app.scene)));
    // The clock is at the right; what a narrow screen cuts off is at the end.
    let clock: u16 = if app.scene.replay.is_some() { 20 } else { 9 };
    let text: String = text.chars().take(width.saturating_sub(clock.into())).collect();
    frame.buffer_mut().set_stringn(0, area.y, text, width, theme.strong());
    let Some(snapshot) = &app.snapshot else { return };
    let time = summary::time(&app.scene, &snapshot.system);
    let x = area.width.saturating_sub(clock);
    frame.buffer_mut().set_stringn(x, area.y, format!(" {time}"), clock.into(), theme.strong());
    if area.height < 2 {
        return;
    }
    let numbers = summary::numbers(&app.settings, &app.scene, snapshot.system.seconds);
    let mut lines = vec![summary::memory(snapshot, numbers)];
    if area.height > 2 {
        lines.push(summary::pressure(snapshot, numbers));
    }
    let last = area.y + u16::try_from(lines.len()).unwrap_or(1);
    for (text, y) in lines.into_iter().zip(area.y + 1..area.bottom()) {
        let mut line = Line::from(text);
        if y == last {
            match summary::lost(&snapshot.system.lost, &app.lost) {
                None => line.push_span("  lost 0"),
                // Only what makes the totals wrong is red.
                Some((text, totals)) => {
                    let style = if totals { theme.warning() } else { theme.strong() };
                    line.spans.insert(0, Span::styled(text + "  ", style));
                }
            }
        }
        frame.buffer_mut().set_line(0, y, &line, area.width);
    }
}

/// What the rows are.
pub(super) fn status(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    if zones.status.height == 0 {
        return;
    }
    let mut parts = Vec::new();
    if let Some(snapshot) = &app.snapshot {
        let by = snapshot.view.by;
        let what = |n: usize| if n == 1 { by.singular() } else { by.plural() };
        let all = snapshot.rows();
        let entries = app.slots.iter().filter(|s| is_named(snapshot, **s)).count();
        parts.push(match app.filter.is_empty() {
            true => format!("{all} {}", what(all)),
            false => format!("{entries} of {all} {}", what(all)),
        });
        if let Some(ended) = snapshot.ended().filter(|n| *n > 0) {
            #[allow(clippy::cast_precision_loss)]
            parts.push(format!("{} ended", decimal(ended as f64)));
        }
        let numbers = app.numbers();
        parts.push(match (numbers.show, app.settings.interval.as_secs_f64()) {
            (Show::Count, wanted) if differ(numbers.seconds, wanted) => {
                format!("in {:.1} s", numbers.seconds)
            }
            (Show::Total, _) => app.since(),
            (show, _) => show.title().into(),
        });
        let arrow = if app.settings.reverse { " reversed" } else { "" };
        let sort = match app.settings.sort {
            crate::top::settings::Sort::Column(c) => cells::title(c),
            other => other.name(),
        };
        parts.push(format!("sorted by {sort}{arrow}"));
        if app.settings.unit == Unit::Bytes {
            parts.push("bytes".into());
        }
        let (left, right) = app.layout().hidden;
        if left + right > 0 {
            let s = if left + right == 1 { "" } else { "s" };
            parts.push(format!("{} more column{s}", left + right));
        }
    }
    let mut spans = vec![Span::raw(parts.join("  "))];
    if app.mode == Mode::Filter || !app.filter.is_empty() {
        let cursor = if app.mode == Mode::Filter { "_" } else { "" };
        let filter = Filter::new(&app.filter);
        if let Some(mistake) = filter.mistake() {
            spans.insert(
                0,
                Span::styled(
                    theme.text(&format!("{}  ", crate::text::foreign::line(mistake))),
                    theme.warning(),
                ),
            );
        }
        spans.insert(
            0,
            Span::styled(theme.text(&format!("filter: {}{cursor}  ", app.filter)), theme.strong()),
        );
    }
    if app.scene.replay.is_some() {
        let text = if app.paused { "REPLAY paused  " } else { "REPLAY playing  " };
        spans.insert(0, Span::styled(text, theme.warning()));
    } else if app.paused {
        let text = match app.back {
            Some(_) => format!("{} s AGO  ", decimal(app.ago())),
            None => "PAUSED  ".into(),
        };
        spans.insert(0, Span::styled(text, theme.warning()));
    }
    // Where there is no line of keys, a message stands here.
    if let Some(text) = message(app).filter(|_| zones.foot.height == 0) {
        spans.insert(0, Span::styled(theme.text(&format!("{text}  ")), theme.warning()));
    }
    let line = Line::from(spans);
    let end = u16::try_from(line.width() + 1).unwrap_or(u16::MAX).min(zones.status.width);
    let buffer = frame.buffer_mut();
    buffer.set_line(0, zones.status.y, &line, zones.status.width);
    // The title of the panel below.
    let rule = theme.rule().repeat(usize::from(zones.status.width - end));
    buffer.set_string(end, zones.status.y, rule, theme.dim());
}

/// It is one of the rows that are counted: not a thread below, nor the rest.
fn is_named(snapshot: &Snapshot, slot: Slot) -> bool {
    matches!(slot, Slot::Entry(i) if snapshot.entries.get(i).is_some_and(|e| !e.named.who.other && e.ended.is_none()))
}

fn message(app: &App) -> Option<String> {
    app.stopped.clone().or_else(|| app.message.as_ref().map(|(text, _)| text.clone()))
}

/// The keys, or a message.
pub(super) fn foot(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    if zones.foot.height == 0 {
        return;
    }
    let keys = match app.mode {
        Mode::Filter => "text  !not  a|b  ~regular.expression  misses>100    Enter keep  Esc drop",
        _ if app.scene.replay.is_some() => {
            "h help  Space play  \u{2190} \u{2192} step  {} minute  () hour  Enter details  / filter q quit"
        }
        _ => "h help  Enter details  / filter  Tab rows  < > sort  m totals  \u{2190} \u{2192} time  q quit",
    };
    let (text, style) = match message(app) {
        Some(text) => (theme.text(&text), theme.warning()),
        None => (theme.text(keys), theme.dim()),
    };
    frame.buffer_mut().set_stringn(0, zones.foot.y, text, zones.foot.width.into(), style);
}
