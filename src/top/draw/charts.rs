//! The history of the system's figures over time.
//!
//! What reads found is one chart with one scale: hits, first uses of read-ahead and misses on top of each other. Each bar is
//! an interval; how long ago it ended is written below.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::Theme;
use crate::text::numbers::Unit;
use crate::text::numbers::binary;
use crate::text::numbers::decimal;
use crate::top::app::App;
use crate::top::app::Moment;
use crate::top::cells;
use crate::top::summary;

/// Room for the scale at the right of the bars.
const SCALE: u16 = 8;
/// Steps of a cell.
pub(super) const STEPS: u32 = 8;

/// Draws the charts into this part of the screen.
pub(super) fn draw(app: &App, theme: &Theme, area: Rect, frame: &mut Frame<'_>) {
    let room = area.width.saturating_sub(SCALE);
    if room < 10 || area.height < 3 {
        return;
    }
    // The interval that is looked at is always seen.
    let place =
        app.back.and_then(|number| app.history.iter().rev().position(|m| m.number == number)).unwrap_or(0);
    let skip = if place < usize::from(room) { 0 } else { place - usize::from(room) / 2 };
    let age = app.history.iter().rev().take(skip).map(|m| m.seconds).sum();
    let shown: Vec<&Moment> = app.history.iter().rev().skip(skip).take(room.into()).collect();
    let bars = Rect { width: room, height: 1, ..area };
    let mut y = area.bottom() - 1;
    axis(app, theme, (&shown, bars, age), y, frame);
    let tall = area.height > 8;
    // From below: the ratio, what was dirtied, and above them what reads found.
    let apart: &[&str] =
        if tall { summary::apart(app.scene.engine) } else { &summary::apart(app.scene.engine)[..1] };
    let lines = if tall { 2 } else { 1 };
    for id in apart {
        y -= lines;
        one(app, theme, (&shown, id), Rect { y, height: lines, ..bars }, frame);
    }
    stack(app, theme, &shown, Rect { height: y - area.y, ..bars }, frame);
}

/// The column of the n-th moment from the end.
fn column(bars: Rect, n: usize) -> u16 {
    bars.right() - 1 - u16::try_from(n).unwrap_or(0)
}

/// How long ago intervals ended.
fn axis(
    app: &App,
    theme: &Theme,
    (shown, bars, mut age): (&[&Moment], Rect, f64),
    y: u16,
    frame: &mut Frame<'_>,
) {
    let buffer = frame.buffer_mut();
    buffer.set_string(bars.x, y, theme.rule().repeat(bars.width.into()), theme.dim());
    let mut free = bars.right() + 14;
    let signed = |m: &Moment| app.marks.contains(&m.number) || app.back == Some(m.number);
    let signs: Vec<u16> =
        shown.iter().enumerate().filter(|(_, m)| signed(m)).map(|(n, _)| column(bars, n)).collect();
    let now = if app.scene.replay.is_some() { "0s" } else { "now" };
    for (n, moment) in shown.iter().enumerate() {
        let x = column(bars, n);
        let text = if age > 0.0 { format!("-{}", ago(age)) } else { now.to_owned() };
        let width = u16::try_from(text.len()).unwrap_or(0);
        // A mark covers no letter: `now` goes behind the bars, where it still is later than the mark; any other age is told
        // further on.
        let mut begin = (x + 1).saturating_sub(width);
        let covered = |begin: u16| (begin..begin + width).any(|x| signs.contains(&x));
        if n == 0 && covered(begin) && width <= SCALE {
            begin = bars.right();
        }
        if begin >= bars.x && n % 5 == 0 && free > x + 12 && !covered(begin) {
            buffer.set_string(begin, y, &text, theme.dim());
            free = begin;
        }
        if app.marks.contains(&moment.number) {
            buffer.set_string(x, y, if theme.unicode { "◆" } else { "*" }, theme.strong());
        }
        if app.back.is_some_and(|at| at == moment.number) {
            buffer.set_string(x, y, if theme.unicode { "▲" } else { "^" }, theme.warning());
        }
        age += moment.seconds;
    }
}

/// A length of time in few characters.
pub(super) fn ago(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 && (s - s.round()).abs() > 0.05 => format!("{s:.1}s"),
        s if s < 119.5 => format!("{s:.0}s"),
        s if s < 7170.0 => format!("{:.0}m", s / 60.0),
        s => format!("{:.1}h", s / 3600.0),
    }
}

/// The next number that is easily read.
pub(super) fn round_up(x: f64) -> f64 {
    if x <= 0.0 || !x.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(x.log10().floor());
    [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|n| *n >= x * (1.0 - 1e-9))
        .unwrap_or(x)
}

pub(super) fn scale(app: &App, id: &str, x: f64) -> String {
    let page = app.scene.page_size as f64;
    match id {
        id if id.ends_with("ratio") => format!("{:.0}%", x * 100.0),
        "direct_bytes" => binary(x),
        _ if app.settings.unit == Unit::Bytes => binary(x * page),
        _ => decimal(x),
    }
}

/// So many steps of the whole, at least one for anything at all.
pub(super) fn steps(x: f64, whole: f64, most: u32) -> u32 {
    if x <= 0.0 || whole <= 0.0 { 0 } else { ((x / whole * f64::from(most)).round() as u32).clamp(1, most) }
}

/// One figure by itself.
fn one(app: &App, theme: &Theme, (shown, id): (&[&Moment], &str), area: Rect, frame: &mut Frame<'_>) {
    let Some(i) = summary::series(app.scene.engine).iter().position(|s| *s == id) else { return };
    let values: Vec<_> = shown.iter().map(|m| m.values.get(i).copied().flatten()).collect();
    let most = values.iter().flatten().fold(0.0_f64, |a, b| a.max(*b));
    let top = if id.ends_with("ratio") { 1.0 } else { round_up(most) };
    let all = u32::from(area.height) * STEPS;
    let style = theme.figure(id);
    for (n, value) in values.into_iter().enumerate() {
        let x = column(area, n);
        let Some(value) = value else {
            frame.buffer_mut().set_string(x, area.bottom() - 1, theme.absent(), theme.dim());
            continue;
        };
        let filled = steps(value, top, all);
        for line in 0..area.height {
            let from = u32::from(line) * STEPS;
            let part = filled.saturating_sub(from).min(STEPS);
            if part > 0 {
                let text = theme.bar(f64::from(part) / f64::from(STEPS));
                let style = if id.ends_with("ratio") { theme.ratio(value) } else { style };
                frame.buffer_mut().set_string(x, area.bottom() - 1 - line, text, style);
            }
        }
    }
    let text = scale(app, id, top);
    frame.buffer_mut().set_stringn(area.right() + 1, area.y, text, usize::from(SCALE) - 1, theme.dim());
    let title = cells::find(id).map_or("", cells::title);
    called(title.strip_prefix("READ_").unwrap_or(title), style, area, frame);
}

/// What a chart is of, below its scale: it stands beside figures that may be others.
fn called(name: &str, style: Style, area: Rect, frame: &mut Frame<'_>) {
    if area.height > 1 {
        frame.buffer_mut().set_stringn(area.right() + 1, area.y + 1, name, usize::from(SCALE) - 1, style);
    }
}

/// What reads found, on top of each other: misses below, where they are seen however few they are.
fn stack(app: &App, theme: &Theme, shown: &[&Moment], area: Rect, frame: &mut Frame<'_>) {
    if area.height == 0 {
        return;
    }
    let ids = summary::stack(app.scene.engine);
    let places: Vec<_> =
        ids.iter().map(|id| summary::series(app.scene.engine).iter().position(|s| s == id)).collect();
    let values = |m: &Moment| -> Option<Vec<f64>> {
        places.iter().map(|i| m.values.get((*i)?).copied().flatten()).collect()
    };
    let bars: Vec<_> = shown.iter().map(|m| values(m)).collect();
    let sum = |bar: &Vec<f64>| bar.iter().sum::<f64>();
    let top = round_up(bars.iter().flatten().map(sum).fold(0.0, f64::max));
    let all = u32::from(area.height) * STEPS;
    for (n, bar) in bars.iter().enumerate() {
        let x = column(area, n);
        let Some(bar) = bar else {
            frame.buffer_mut().set_string(x, area.bottom() - 1, theme.absent(), theme.dim());
            continue;
        };
        // Where each of them ends.
        let mut end = 0;
        let ends: Vec<u32> = bar
            .iter()
            .map(|value| {
                end = (end + steps(*value, top, all)).min(all);
                end
            })
            .collect();
        for line in 0..area.height {
            let y = area.bottom() - 1 - line;
            if let Some((text, style)) = cell(theme, ids, &ends, u32::from(line) * STEPS) {
                frame.buffer_mut().set_string(x, y, text, style);
            }
        }
    }
    let id = ids.first().copied().unwrap_or_default();
    called("reads", theme.dim(), area, frame);
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.right() + 1, area.y, scale(app, id, top), usize::from(SCALE) - 1, theme.dim());
    if area.height > 4 && area.height % 2 == 0 {
        let y = area.y + area.height / 2;
        let middle = scale(app, id, top / f64::from(area.height) * f64::from(area.bottom() - y));
        buffer.set_stringn(area.right() + 1, y, middle, usize::from(SCALE) - 1, theme.dim());
    }
}

/// What stands in the cell that begins at this step: two figures at most, the lower one before the other.
pub(super) fn cell(theme: &Theme, ids: &[&str], ends: &[u32], from: u32) -> Option<(&'static str, Style)> {
    let to = from + STEPS;
    let inside = |i: usize| {
        let begin = if i == 0 { 0 } else { ends.get(i - 1).copied().unwrap_or(0) };
        let end = ends.get(i).copied().unwrap_or(0);
        end.min(to).saturating_sub(begin.max(from))
    };
    let mut there = (0..ids.len()).filter(|i| inside(*i) > 0);
    let first = there.next()?;
    let (low, second) = (inside(first), there.next());
    let id = |i: usize| ids.get(i).copied().unwrap_or_default();
    if !theme.colors() {
        // Without colours, the sign tells which one has the most of the cell.
        let most = (0..ids.len()).max_by_key(|i| inside(*i))?;
        return Some((theme.shade(ids.len() - 1 - most), Style::new()));
    }
    let style = theme.figure(id(first));
    let style = match second.and_then(|i| theme.figure(id(i)).fg) {
        // The one above goes on to the end of the cell, or ends in it: then a little is lost of its top.
        Some(color) if second.is_some_and(|i| low + inside(i) >= STEPS / 2) => style.bg(color),
        _ => style,
    };
    Some((theme.bar(f64::from(low) / f64::from(STEPS)), style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_ages_short() {
        for (x, top) in
            [(0.0, 1.0), (1.0, 1.0), (1.1, 1.5), (3.5, 4.0), (9.0, 10.0), (21_000.0, 30_000.0), (0.3, 0.3)]
        {
            assert!((round_up(x) - top).abs() < 1e-9 * top, "{x}: {}", round_up(x));
        }
        for (seconds, text) in [(0.5, "0.5s"), (3.0, "3s"), (60.0, "60s"), (600.0, "10m"), (9000.0, "2.5h")] {
            assert_eq!(ago(seconds), text);
        }
    }

    #[test]
    fn anything_at_all_is_seen() {
        assert_eq!((steps(0.0, 100.0, 32), steps(0.001, 100.0, 32), steps(100.0, 100.0, 32)), (0, 1, 32));
    }

    #[test]
    fn figures_stand_on_top_of_each_other() {
        let theme = Theme::sixteen();
        let ids = ["misses", "readahead_hits", "hits"];
        // Misses fill three steps, read-ahead the cell and half of the next, hits the rest.
        let ends = [3, 12, 16];
        let color = |id| theme.figure(id).fg;
        let (text, style) = cell(&theme, &ids, &ends, 0).unwrap_or_default();
        assert_eq!(
            (text, style.fg, style.bg),
            (theme.bar(3.0 / 8.0), color("misses"), color("readahead_hits"))
        );
        let (_, style) = cell(&theme, &ids, &ends, 8).unwrap_or_default();
        assert_eq!((style.fg, style.bg), (color("readahead_hits"), color("hits")));
        assert_eq!(cell(&theme, &ids, &ends, 16), None);
    }
}
