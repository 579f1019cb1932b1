//! The upper part: where it counts, what is in the cache, the figures of the system and their history.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span;
use ratatui::widgets::Sparkline;
use ratatui::widgets::SparklineBar;

use super::theme::Theme;
use crate::columns;
use crate::columns::Column;
use crate::live::snapshot::Snapshot;
use crate::text::numbers::Unit;
use crate::text::numbers::binary;
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
/// Room for the number at the right of the bars.
const MOST: u16 = 8;
/// Bars are numbers without a fraction: what is 1 in full.
const FULL: f64 = 10_000.0;

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
    let all = summary::series(app.scene.engine).iter().filter_map(|id| cells::find(id));
    for (i, column) in all.enumerate() {
        let y = zones.figures.y + u16::try_from(i).unwrap_or(0) * zones.each;
        let (title, text) = summary::figure(column, column.value(&line), numbers);
        let style = theme.figure(column.id);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(0, y, format!("{title:<10}"), zones.figures.width.into(), style);
        buffer.set_stringn(
            10,
            y,
            format!("{text:>10}"),
            zones.figures.width.saturating_sub(10).into(),
            theme.strong(),
        );
        let area = Rect::new(0, y, zones.figures.width, zones.each);
        bars(app, theme, (column, i), area, frame);
    }
}

fn bars(app: &App, theme: &Theme, (column, i): (&Column, usize), area: Rect, frame: &mut Frame<'_>) {
    let room = area.width.saturating_sub(BARS + MOST);
    if room < 5 {
        return;
    }
    let shown = app.history.len().min(room.into());
    let values: Vec<Option<f64>> =
        app.history.iter().skip(app.history.len() - shown).map(|p| p.get(i).copied().flatten()).collect();
    let ratio = column.id.ends_with("ratio");
    let most = values.iter().flatten().fold(0.0_f64, |a, b| a.max(*b));
    // A bar for something is never empty.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let height = |x: f64, whole: f64| {
        if x <= 0.0 {
            0
        } else {
            ((x / whole * FULL) as u64).max((FULL / 8.0 / f64::from(area.height)) as u64)
        }
    };
    let whole = if ratio { 1.0 } else { most.max(f64::MIN_POSITIVE) };
    let data = values.iter().map(|v| SparklineBar::from(v.map(|x| height(x, whole))));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let spark = Sparkline::default()
        .data(data.collect::<Vec<_>>())
        .max(FULL as u64)
        .bar_set(theme.bars())
        .absent_value_symbol(theme.absent())
        .absent_value_style(theme.dim())
        .style(theme.figure(column.id));
    let width = u16::try_from(shown).unwrap_or(room);
    frame.render_widget(spark, Rect::new(BARS + room - width, area.y, width, area.height));
    let text = match (ratio, most) {
        (true, _) => "100%".into(),
        (_, x) if x <= 0.0 => String::new(),
        _ if matches!(column.id, "direct_bytes") => binary(most),
        #[allow(clippy::cast_precision_loss)]
        _ if app.settings.unit == Unit::Bytes => binary(most * app.scene.page_size as f64),
        _ => decimal(most),
    };
    frame.buffer_mut().set_stringn(BARS + room + 1, area.y, text, usize::from(MOST) - 1, theme.dim());
}

fn place(app: &App, theme: &Theme, area: Rect, frame: &mut Frame<'_>) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let text = theme.text(&format!("cachetop  {}", summary::place(&app.settings, &app.scene)));
    // The clock is at the right; what a narrow screen cuts off is at the end.
    let text: String = text.chars().take(width.saturating_sub(9)).collect();
    frame.buffer_mut().set_stringn(0, area.y, text, width, theme.strong());
    let Some(snapshot) = &app.snapshot else { return };
    let time = summary::time(&app.scene, &snapshot.system);
    let x = area.width.saturating_sub(9);
    frame.buffer_mut().set_stringn(x, area.y, format!(" {time}"), 9, theme.strong());
    if area.height > 1 {
        let numbers = summary::numbers(&app.settings, &app.scene, snapshot.system.seconds);
        let text = summary::cache(&snapshot.system, numbers);
        let lost = snapshot.system.lost.total() > 0;
        let (before, after) = text.split_at(text.find("lost").unwrap_or(text.len()));
        let style = if lost { theme.warning() } else { ratatui::style::Style::new() };
        let line = Line::from(vec![Span::raw(before), Span::styled(after, style)]);
        frame.buffer_mut().set_line(0, area.y + 1, &line, area.width);
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
        let all = snapshot.number();
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
    if app.paused {
        spans.insert(0, Span::styled("PAUSED  ", theme.warning()));
    }
    // Where there is no line of keys, a message stands here.
    if let Some(text) = message(app).filter(|_| zones.foot.height == 0) {
        spans.insert(0, Span::styled(theme.text(&format!("{text}  ")), theme.warning()));
    }
    frame.buffer_mut().set_line(0, zones.status.y, &Line::from(spans), zones.status.width);
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
        _ => "h help  Enter details  / filter  Tab rows  < > sort  m totals  p pause  q quit",
    };
    let (text, style) = match message(app) {
        Some(text) => (theme.text(&text), theme.warning()),
        None => (keys.to_owned(), theme.dim()),
    };
    frame.buffer_mut().set_stringn(0, zones.foot.y, text, zones.foot.width.into(), style);
}
