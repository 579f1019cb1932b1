//! The upper part: where it counts, what is in the cache, the figures of the system and their history.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::text::Span;

use super::charts;
use super::foot;
use super::panels;
use super::theme::Theme;
use crate::columns;
use crate::columns::Column;
use crate::live::snapshot::Entry;
use crate::live::snapshot::Snapshot;
use crate::text::numbers::Unit;
use crate::text::numbers::decimal;
use crate::text::width::at_a_word;
use crate::text::width::beginning;
use crate::top::app::App;
use crate::top::app::Mode;
use crate::top::cells;
use crate::top::filter::Filter;
use crate::top::numbers::differ;
use crate::top::settings::Show;
use crate::top::settings::Sort;
use crate::top::summary;
use crate::top::table::Slot;
use crate::top::tree::Tree;
use crate::top::zones::Zones;

/// Where bars begin: behind title and number.
const BARS: u16 = 22;

/// What a meter at the right takes, with a gap.
const METER: usize = 27;
/// What the third line takes with short names.
const LINE: usize = 78;

/// Draws it.
pub(super) fn draw(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    place(app, theme, zones, frame);
    let page = matches!(app.mode, Mode::Help(_) | Mode::Columns(_) | Mode::Details(_));
    if page || zones.figures.height == 0 {
        return;
    }
    let Some(snapshot) = &app.snapshot else { return };
    if zones.each == 0 {
        let width = usize::from(zones.figures.width);
        let text = summary::figures(&app.settings, &app.scene, &snapshot.system, width);
        frame.buffer_mut().set_stringn(
            zones.figures.x,
            zones.figures.y,
            text,
            zones.figures.width.into(),
            theme.strong(),
        );
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
        let value = column.value(&line);
        let heat = match value {
            columns::Value::Ratio(x) => theme.ratio(x),
            _ => Style::new(),
        };
        let (title, text) = summary::figure(column, value, numbers);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(area.x, y, format!("{title:<10}"), area.width.into(), theme.figure(column.id));
        let room = usize::from(area.width.saturating_sub(10));
        buffer.set_stringn(area.x + 10, y, format!("{text:>10}"), room, heat.patch(theme.strong()));
    }
    let room = Rect { x: area.x + BARS, width: area.width.saturating_sub(BARS), ..area };
    charts::draw(app, theme, room, frame);
}

fn place(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    let area = zones.place;
    if area.height == 0 {
        return;
    }
    let text = format!("cachetop  {}", summary::place(&app.settings, &app.scene));
    // The clock is at the right; what a narrow screen cuts off is at the end.
    let clock: u16 = if app.scene.replay.is_some() { 20 } else { 9 };
    let width = usize::from(area.width.saturating_sub(clock));
    let text = theme.text(&at_a_word(&text, width));
    let buffer = frame.buffer_mut();
    if zones.framed() {
        panels::title(theme, zones, area.y, &Line::styled(text, theme.strong()), buffer);
    } else {
        buffer.set_stringn(area.x, area.y, text, width, theme.strong());
    }
    let Some(snapshot) = &app.snapshot else { return };
    let after = if zones.framed() { " " } else { "" };
    let time = format!(" {}{after}", summary::time(&app.scene, &snapshot.system));
    let x = area.right().saturating_sub(clock);
    buffer.set_style(Rect::new(x, area.y, clock.min(area.width), 1), Style::reset());
    buffer.set_string(x, area.y, time, theme.strong());
    if area.height < 2 {
        return;
    }
    let numbers = summary::numbers(&app.settings, &app.scene, snapshot.system.seconds);
    let width = usize::from(area.width);
    // Only what makes the totals wrong is red.
    let lost = summary::lost(&snapshot.system.lost, &app.lost).map(|(text, totals)| {
        let style = if totals { theme.warning() } else { theme.strong() };
        Span::styled(text + "  ", style)
    });
    let beside = width.saturating_sub(lost.as_ref().map_or(0, Span::width));
    let memory = |room| Span::raw(theme.text(&summary::memory(snapshot, numbers, room)));
    let pressure = |lost, room| Span::raw(theme.text(&summary::pressure(snapshot, numbers, lost, room)));
    const NOTHING: &str = "  lost 0";
    let meters = meters(snapshot);
    // Where there is room for the meter beside shorter names, it is kept for that.
    let free = if meters[1].is_some() && width >= LINE + METER { width - METER } else { width };
    let lines: Vec<Line<'_>> = match (lost, area.height > 2) {
        (Some(lost), true) => vec![memory(width).into(), Line::from(vec![lost, pressure(None, beside)])],
        (Some(lost), false) => vec![Line::from(vec![lost, memory(beside)])],
        (None, true) => vec![memory(width).into(), pressure(Some(0), free).into()],
        (None, false) => {
            vec![Line::from(vec![memory(width.saturating_sub(NOTHING.len())), Span::raw(NOTHING)])]
        }
    };
    for ((line, y), meter) in lines.into_iter().zip(area.y + 1..area.bottom()).zip(meters) {
        let buffer = frame.buffer_mut();
        buffer.set_line(area.x, y, &line, area.width);
        let left = usize::from(area.width).saturating_sub(line.width());
        if let (Some((name, part, bad)), true) = (meter, left >= METER) {
            let style = if bad { theme.misses(part * 0.5) } else { theme.shares() };
            let x = area.right() - 24;
            buffer.set_stringn(x, y, format!("{name:<7}"), 7, theme.dim());
            let (end, _) = buffer.set_stringn(x + 7, y, theme.share(part, 12), 12, style);
            buffer.set_style(Rect::new(end, y, (x + 19).saturating_sub(end), 1), theme.groove());
            buffer.set_string(x + 19, y, format!("{:>4.0}%", part * 100.0), Style::new());
        }
    }
}

/// Parts of what there is, to be drawn as bars: the cache of all memory, dirty pages of those from which writers wait.
fn meters(snapshot: &Snapshot) -> [Option<(&'static str, f64, bool)>; 2] {
    let machine = snapshot.pulse.unwrap_or_default().machine;
    let memory = &snapshot.system.memory;
    let part = |n: u64, all: Option<u64>| all.filter(|all| *all > 0).map(|all| n as f64 / all as f64);
    let cached = part(memory.cached_bytes, machine.total).map(|x| ("cached", x, false));
    let dirty = part(memory.dirty_bytes, machine.dirty_limit).map(|x| ("dirty", x, true));
    [cached, dirty]
}

/// What the rows are.
pub(super) fn status(app: &App, theme: &Theme, zones: &Zones, frame: &mut Frame<'_>) {
    if zones.status.height == 0 {
        return;
    }
    let (mut parts, mut spans) = (parts(app, theme), notes(app, theme, zones));
    // What has no room is left out as a whole.
    let room = usize::from(zones.status.width).saturating_sub(spans.iter().map(Span::width).sum());
    while parts.len() > 1 && parts.join("  ").chars().count() > room {
        parts.pop();
    }
    spans.push(Span::raw(parts.join("  ")));
    // What was typed, and messages, may take more than there is.
    let mut room = usize::from(zones.status.width);
    for span in &mut spans {
        if span.width() > room {
            span.content = theme.text(&beginning(&span.content, room)).into();
        }
        room = room.saturating_sub(span.width());
    }
    panels::title(theme, zones, zones.status.y, &Line::from(spans), frame.buffer_mut());
}

/// What the rows are, in words: what matters most first.
fn parts(app: &App, theme: &Theme) -> Vec<String> {
    let Some(snapshot) = &app.snapshot else { return Vec::new() };
    let mut parts = Vec::new();
    let by = snapshot.view.by;
    // How many were not kept is not known.
    let more = if snapshot.cut { "+" } else { "" };
    let what = |n: usize| if n == 1 && !snapshot.cut { by.singular() } else { by.plural() };
    let all = snapshot.rows();
    let entries = app.slots.iter().filter(|s| is_named(app, **s)).count();
    parts.push(match app.filter.is_empty() {
        true => format!("{all}{more} {}", what(all)),
        false => format!("{entries} of {all}{more} {}", what(all)),
    });
    if let Some(ended) = snapshot.ended.filter(|n| *n > 0) {
        parts.push(format!("{}{more} ended", decimal(ended as f64)));
    }
    let numbers = app.numbers();
    parts.push(match (numbers.show, app.settings.interval.as_secs_f64()) {
        (Show::Count, wanted) if differ(numbers.seconds, wanted) => {
            format!("in {:.1} s", numbers.seconds)
        }
        (Show::Total, _) => app.since(),
        (show, _) => show.title().into(),
    });
    // Numbers fall from above unless reversed, names rise.
    let falls = matches!(app.settings.sort, Sort::Busy | Sort::Column(_)) != app.settings.reverse;
    match app.hangs() {
        Tree::Flat => {}
        Tree::Own => parts.push("tree, each its own".into()),
        Tree::Below => parts.push("tree, with those below".into()),
    }
    let sort = match app.settings.sort {
        Sort::Column(c) => cells::title(c),
        other => other.name(),
    };
    parts.push(format!("sorted by {sort} {}", theme.arrow(falls)));
    if app.settings.unit == Unit::Bytes {
        parts.push("bytes".into());
    }
    let (left, right) = app.layout().hidden;
    if left + right > 0 {
        let s = if left + right == 1 { "" } else { "s" };
        parts.push(format!("{} more column{s}", left + right));
    }
    parts
}

/// What was typed, and what is to be known of the picture, before all else.
fn notes(app: &App, theme: &Theme, zones: &Zones) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    if app.mode == Mode::Search {
        let text = theme.text(&format!("search: {}_  ", app.search));
        spans.insert(0, Span::styled(text, theme.strong()));
    }
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
    if let Some(text) = foot::message(app).filter(|_| zones.foot.height == 0) {
        spans.insert(0, Span::styled(theme.text(&format!("{text}  ")), theme.warning()));
    }
    spans
}

/// It is one of the rows that are counted: not a thread below, nor one that the filter leaves for those that it holds.
fn is_named(app: &App, slot: Slot) -> bool {
    let row = match slot {
        Slot::Entry(_) => true,
        Slot::Thread(..) => false,
        Slot::Node(i) => app.tree.nodes.get(i).is_some_and(|node| node.wanted),
    };
    let entry = app.entry(slot).filter(|_| row);
    entry.is_some_and(Entry::is_counted)
}
