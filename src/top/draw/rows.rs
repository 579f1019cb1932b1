//! The table: only the rows that are seen are made.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::Theme;
use crate::columns;
use crate::columns::Column;
use crate::live::snapshot::Ended;
use crate::model::Row;
use crate::top::app::App;
use crate::top::filter::Filter;
use crate::top::layout;
use crate::top::settings::Sort;
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
        frame.buffer_mut().set_stringn(area.x, area.y, text, area.width.into(), theme.dim());
        return;
    }
    if app.slots.is_empty() && area.height > 0 {
        let text = match (app.filter.is_empty(), Filter::new(&app.filter).mistake()) {
            (true, _) => "nothing happened in this interval",
            (false, None) => "no row is taken by the filter: Esc drops it",
            (false, Some(_)) => "the filter is not understood: Esc drops it",
        };
        frame.buffer_mut().set_stringn(area.x, area.y, text, area.width.into(), theme.dim());
    }
    let marks = marks(app, &look);
    let seen = app.slots.iter().enumerate().skip(app.offset);
    for ((at, slot), y) in seen.zip(area.y..area.bottom()) {
        let Some((mut row, state)) = app.row(*slot) else { continue };
        let over = if state.is_over() { "x " } else { "" };
        let mark = match slot {
            Slot::Thread(_, last) => theme.branch(*last).to_owned(),
            Slot::Entry(_) => over.to_owned(),
            Slot::Node(i) => {
                let node = app.tree.nodes.get(*i);
                if let Some(name) = node.and_then(|n| n.name.as_ref()) {
                    (row.who.cgroup, row.who.unit) = (Some(name.clone()), None);
                }
                node.map_or_else(String::new, |n| branches(theme, &n.lasts, layout.name)) + over
            }
        };
        let entry = app.entry(*slot);
        let line = entry.filter(|_| app.by() == crate::pivot::By::Process && row.who.tid.is_none());
        let line = line.and_then(|e| app.argv.get(&e.named.who));
        let together = entry.and_then(|e| e.ended).map(together);
        // Not the parent's own figures, but those of its children.
        let below =
            app.snapshot.as_ref().is_some_and(|s| s.view.ended == Ended::Parent) && row.who.pid.is_some();
        let together = together.map(|mark| if below { mark + "below " } else { mark });
        let mark = together.unwrap_or(mark);
        let look = Look { numbers: look.numbers.over(entry.and_then(|e| e.seconds)), ..look };
        let text = theme.text(&look.with_line(&row, &mark, line));
        let mut style = if state.is_over() { theme.dim() } else { ratatui::style::Style::new() };
        if app.selected.is_some() && at == app.at {
            style = style.patch(theme.selected());
        }
        let buffer = frame.buffer_mut();
        buffer.set_style(Rect::new(area.x, y, area.width, 1), style);
        buffer.set_stringn(area.x, y, text, area.width.into(), style);
        let styled = state.is_over() || app.selected.is_some() && at == app.at;
        let plain = !styled;
        let busy = match slot {
            Slot::Node(i) if !state.is_over() => app.tree.nodes.get(*i).map(|n| n.busy),
            _ => entry.filter(|e| e.state.counts()).map(|e| e.busy),
        };
        for mark in &marks {
            mark.draw(theme, (&row, busy, plain), Rect { y, height: 1, ..area }, buffer);
        }
    }
}

/// What stands before a row of processes that have ended.
fn together(number: u32) -> String {
    match number {
        // Some were put away: nobody counted how many they were.
        0 => "many x ".into(),
        1 => "x ".into(),
        n => format!("{n}x "),
    }
}

/// The branches before a row of a tree. Of those above, the nearest are drawn, as far as they leave a name its room: half of the
/// column at least, and no less than it takes to tell who it is.
fn branches(theme: &Theme, lasts: &[bool], room: usize) -> String {
    /// Columns that a name has at least.
    const NAME: usize = 14;
    let Some((own, above)) = lasts.split_last() else { return String::new() };
    let most = (room / 2).min(room.saturating_sub(NAME)) / 3;
    let hidden = above.len().saturating_sub(most.saturating_sub(1).max(1));
    let above = above.get(hidden..).unwrap_or_default();
    let more = match (hidden, theme.unicode) {
        (0, _) => "",
        (_, true) => "\u{2026}",
        (_, false) => "~",
    };
    let pass = |last: &bool| match (last, theme.unicode) {
        (true, _) => "   ",
        (false, true) => "│  ",
        (false, false) => "|  ",
    };
    more.to_owned() + &above.iter().map(pass).collect::<String>() + theme.branch(*own)
}

/// What is drawn over the text of a row.
struct Mark {
    begin: u16,
    width: u16,
    what: What,
}

enum What {
    /// A bar for the part of this whole.
    Share(f64),
    /// Colours for a ratio of hits.
    Ratio(&'static Column),
    /// The same for misses, of which there are so many.
    Misses(&'static Column, f64),
}

/// What is marked in every row, and where.
fn marks(app: &App, look: &Look<'_>) -> Vec<Mark> {
    let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let Some(snapshot) = &app.snapshot else { return Vec::new() };
    let what = |sort: Sort| match sort {
        Sort::Busy => {
            let busy = snapshot.entries.iter().filter(|e| e.state.counts()).map(|e| e.busy);
            Some(What::Share(busy.fold(0, u64::saturating_add) as f64))
        }
        Sort::Column(column) if column.id.ends_with("hit_ratio") => Some(What::Ratio(column)),
        Sort::Column(column) if matches!(column.id, "misses" | "classic_misses") => {
            let line = columns::Line::from(&snapshot.system);
            Some(What::Misses(column, column.value(&line).sort_key()))
        }
        _ => None,
    };
    let places = look.titles().1.into_iter();
    let mark = |(begin, end, sort)| {
        Some(Mark { begin: number(begin), width: number(end - begin), what: what(sort)? })
    };
    places.filter_map(mark).collect()
}

impl Mark {
    fn draw(
        &self,
        theme: &Theme,
        (row, busy, plain): (&Row, Option<u64>, bool),
        line: Rect,
        buffer: &mut Buffer,
    ) {
        let area = Rect { x: line.x + self.begin, width: self.width, ..line }.intersection(line);
        let style = match &self.what {
            What::Share(all) => {
                let part = busy.filter(|_| *all > 0.0).map_or(0.0, |busy| busy as f64 / all);
                let text = theme.share(part, self.width.into());
                let style = if plain { theme.shares() } else { Style::new() };
                buffer.set_stringn(area.x, line.y, text, area.width.into(), style);
                return;
            }
            What::Ratio(column) => match column.value(&columns::Line::from(row)) {
                columns::Value::Ratio(x) => theme.ratio(x),
                _ => return,
            },
            What::Misses(column, all) => match column.value(&columns::Line::from(row)).sort_key() {
                // The system's may be of another time than a row's.
                x if x > 0.0 => theme.misses(x / all.max(x)),
                _ => return,
            },
        };
        if plain {
            buffer.set_style(area, style);
        }
    }
}

fn titles(app: &App, theme: &Theme, look: &Look<'_>, area: Rect, frame: &mut Frame<'_>) {
    if area.height == 0 {
        return;
    }
    let (text, places) = look.titles();
    let buffer = frame.buffer_mut();
    buffer.set_style(area, theme.titles());
    buffer.set_stringn(area.x, area.y, text, area.width.into(), theme.titles());
    for (begin, end, sort) in places {
        if sort != app.settings.sort {
            continue;
        }
        let end = if sort == Sort::Name { begin + layout::name_title(look.by).len() } else { end };
        let begin = u16::try_from(begin).unwrap_or(u16::MAX).min(area.width);
        let end = u16::try_from(end).unwrap_or(u16::MAX).min(area.width);
        let style = theme.titles().patch(theme.sorted());
        buffer.set_style(Rect::new(area.x + begin, area.y, end - begin, 1), style);
        // Numbers fall from above unless reversed, names rise.
        let falls = matches!(sort, Sort::Busy | Sort::Column(_)) != app.settings.reverse;
        buffer.set_stringn(
            area.x + end,
            area.y,
            theme.arrow(falls),
            usize::from(area.width - end).min(1),
            style,
        );
        break;
    }
}
