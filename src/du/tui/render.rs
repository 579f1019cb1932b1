//! From a state to a frame. No colours: the cursor is reversed, so it can be seen on every terminal.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Block;
use ratatui::widgets::Clear;
use ratatui::widgets::Paragraph;

use super::keys::KEYS;
use super::state::Mode;
use super::state::State;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::view;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;
use crate::text::width::end;

/// Cells of the bar.
const BAR: usize = 10;

fn pages(n: Option<u64>, row: &Row) -> String {
    let size = |n: u64| bytes(n.saturating_mul(rustix::param::page_size() as u64));
    let least = if row.totals.partial() { "+" } else { "" };
    n.map_or("-".into(), |n| format!("{}{least}", size(n)))
}

fn bar(row: &Row) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    match row.totals.ratio() {
        // Something is never drawn as nothing, and less than all never as all.
        Some(ratio) => {
            let least = usize::from(ratio > 0.0);
            let most = if ratio < 1.0 { BAR - 1 } else { BAR };
            let full = ((ratio * BAR as f64).round() as usize).clamp(least, most);
            format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
        }
        None => " ".repeat(BAR + 2),
    }
}

/// A column: its title, its width, and what stands in it.
type Column = (&'static str, usize, fn(&Row) -> String);

fn sized(row: &Row, figure: u64) -> String {
    let least = if row.totals.partly_sized() { "+" } else { "" };
    row.totals.sized(figure).map_or("-".into(), |n| format!("{}{least}", bytes(n)))
}

const SIZE: Column = ("SIZE", 9, |r| sized(r, r.totals.size));
const DISK: Column = ("DISK", 9, |r| sized(r, r.totals.disk));
const CACHED: Column = ("CACHED", 9, |r| pages(r.totals.cached(), r));
const PERCENT: Column = ("PERCENT", 8, |r| r.totals.ratio().map_or("-".into(), percent));
const BAR_OF: Column = ("", BAR + 2, bar);
const DIRTY: Column = ("DIRTY", 8, |r| pages(r.totals.only_cachestat(r.totals.dirty), r));

/// The columns for a width: names need some of it as well. PERCENT is of SIZE, so that one stays longer than DISK.
const fn columns(width: u16) -> &'static [Column] {
    match width {
        92.. => &[SIZE, DISK, CACHED, PERCENT, BAR_OF, DIRTY],
        72.. => &[SIZE, DISK, CACHED, PERCENT, DIRTY],
        58.. => &[SIZE, DISK, CACHED, PERCENT],
        48.. => &[SIZE, CACHED, PERCENT],
        34.. => &[CACHED, PERCENT],
        _ => &[CACHED],
    }
}

fn cells(columns: &[Column], cell: impl Fn(&Column) -> String) -> String {
    columns.iter().fold(String::new(), |line, c| format!("{line}{:>width$} ", cell(c), width = c.1))
}

fn line(row: &Row, marked: bool, columns: &[Column]) -> String {
    let name = row.path.file_name().unwrap_or_else(|| row.path.as_os_str());
    let slash = if row.kind == Kind::Directory { "/" } else { "" };
    let why = row.why.map_or(String::new(), |why| format!("  ({why})"));
    let mark = if marked { '*' } else { ' ' };
    let cells = cells(columns, |c| (c.2)(row));
    format!("{mark}{cells} {}{slash}{why}", view::name(name.as_ref()))
}

/// Draws it.
pub(super) fn render(state: &State, frame: &mut Frame) {
    let problem = state.listing.problem.as_deref();
    let [head, titles, list, warning, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(problem.is_some().into()),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let width = frame.area().width;
    let whole = state.listing.whole.as_ref();
    let sum = whole.map_or(String::new(), |row| {
        let ratio = row.totals.ratio().map_or("-".into(), percent);
        format!(
            "{} of {} cached ({ratio})",
            pages(row.totals.cached(), row),
            pages(Some(row.totals.pages), row)
        )
    });
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let at = end(&view::name(&state.at), usize::from(width).saturating_sub(sum.len() + 2));
    frame.render_widget(Line::styled(format!("{at}  {sum}"), bold), head);
    if let Some(problem) = problem {
        frame.render_widget(Line::raw(format!(" {problem}")), warning);
    }
    let title = format!(" {} NAME", cells(columns(width), |c| c.0.to_owned()));
    frame.render_widget(Line::styled(title, Style::new().add_modifier(Modifier::UNDERLINED)), titles);
    rows(state, frame, list);
    let hint = match state.mode() {
        Mode::Confirm(paths) => match &paths[..] {
            [one] => format!("drop {} from the cache? y/n", view::name(one)),
            many => format!("drop {} files and directories from the cache? y/n", many.len()),
        },
        _ if !state.message.is_empty() => state.message.clone(),
        _ if !state.marked.is_empty() => format!("{} marked: e evicts them", state.marked.len()),
        _ => "? help   q end   Enter into   h back   Space mark   e evict   c s p d n sort".into(),
    };
    frame.render_widget(Line::styled(hint, bold), foot);
    if *state.mode() == Mode::Help {
        help(frame);
    }
}

fn rows(state: &State, frame: &mut Frame, area: Rect) {
    let height = usize::from(area.height).max(1);
    // The cursor is kept in sight.
    let first = state.selected.saturating_sub(height - 1);
    let shown = state.listing.rows.iter().enumerate().skip(first).take(height);
    let lines: Vec<_> = shown
        .map(|(i, row)| {
            let style = if i == state.selected {
                Style::new().add_modifier(Modifier::REVERSED)
            } else {
                Style::new()
            };
            Line::styled(line(row, state.marked.contains(&row.path), columns(area.width)), style)
        })
        .collect();
    let nothing = match state.listing.problem {
        Some(_) => " what is here is not known",
        None => " nothing is here",
    };
    let text = if lines.is_empty() { Paragraph::new(nothing) } else { Paragraph::new(lines) };
    frame.render_widget(text, area);
}

fn help(frame: &mut Frame) {
    let lines: Vec<_> = KEYS.iter().map(|k| Line::raw(format!(" {:<16} {}", k.name, k.help))).collect();
    let area = frame.area();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let width = 68.min(area.width);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::Action;
    use super::super::state::tests::act;
    use super::super::state::tests::started;
    use super::*;
    use crate::du::row::Sort;

    fn frame(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|f| render(state, f)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn frames() {
        let (mut state, mut fake) = started(Sort::Cached);
        insta::assert_snapshot!("tree_80x24", frame(&state, 80, 24));
        insta::assert_snapshot!("tree_100x10", frame(&state, 100, 10));
        state.listing.problem = Some("/r/closed is not read: Permission denied (os error 13)".into());
        insta::assert_snapshot!("tree_60x10", frame(&state, 60, 10));
        insta::assert_snapshot!("tree_40x10", frame(&state, 40, 10));
        state.listing.problem = None;
        act(&mut state, &mut fake, &[Action::Mark, Action::Evict]);
        insta::assert_snapshot!("confirm_80x8", frame(&state, 80, 8));
        act(&mut state, &mut fake, &[Action::No, Action::Help]);
        insta::assert_snapshot!("help_80x24", frame(&state, 80, 24));
    }

    #[test]
    fn any_size_will_do() {
        let (mut state, mut fake) = started(Sort::Cached);
        for help in [false, true] {
            for (width, height) in [(1, 1), (2, 3), (20, 4), (200, 60)] {
                frame(&state, width, height);
            }
            if !help {
                act(&mut state, &mut fake, &[Action::Help]);
            }
        }
        act(&mut state, &mut fake, &[Action::No, Action::Move(1), Action::Move(1), Action::Enter]);
        assert!(frame(&state, 80, 5).contains("nothing is here"));
        state.listing.problem = Some("cannot be read: permission denied".into());
        let shown = frame(&state, 120, 5);
        assert!(
            shown.contains("cannot be read: permission denied") && shown.contains("not known"),
            "{shown}"
        );
        assert_eq!(
            (end("/a/long/path", 9), end("/a", 9), end("/a", 0)),
            ("...g/path".into(), "/a".into(), "/a".into())
        );
    }
}
