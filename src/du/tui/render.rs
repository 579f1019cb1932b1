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
use super::state::Deed;
use super::state::Mode;
use super::state::State;
use crate::du::row::Kind;
use crate::du::row::Row;
use crate::du::row::Sort;
use crate::du::view;
use crate::text::apart::settle;
use crate::text::apart::spread;
use crate::text::numbers::bytes;
use crate::text::numbers::percent;
use crate::text::width::beginning;
use crate::text::width::end;

fn pages(n: Option<u64>, row: &Row) -> String {
    let size = |n: u64| bytes(n.saturating_mul(rustix::param::page_size() as u64));
    let least = if row.totals.partial() { "+" } else { "" };
    n.map_or("-".into(), |n| format!("{}{least}", size(n)))
}

/// What a row has of all that is cached in the directory, where that is known.
fn share(row: &Row, whole: Option<&Row>) -> String {
    let all = whole.filter(|w| !w.totals.partial()).map(|w| w.totals.cached).filter(|all| *all > 0);
    row.totals.cached().zip(all).map_or(String::new(), |(n, all)| view::bar(n, all))
}

fn files(row: &Row) -> String {
    let least = if row.totals.unread > 0 { "+" } else { "" };
    if row.kind == Kind::File { String::new() } else { format!("{}{least}", row.totals.files) }
}

/// A column: its title, its width, what stands in it of a row and the directory, and which order it is about.
type Column = (&'static str, usize, fn(&Row, Option<&Row>) -> String, Option<Sort>);

fn sized(row: &Row, figure: u64) -> String {
    let least = if row.totals.partly_sized() { "+" } else { "" };
    row.totals.sized(figure).map_or("-".into(), |n| format!("{}{least}", bytes(n)))
}

const SIZE: Column = ("SIZE", 9, |r, _| sized(r, r.totals.size), None);
const DISK: Column = ("DISK", 9, |r, _| sized(r, r.totals.disk), Some(Sort::Size));
const CACHED: Column = ("CACHED", 9, |r, _| pages(r.totals.cached(), r), Some(Sort::Cached));
const PERCENT: Column =
    ("PERCENT", 8, |r, _| r.totals.ratio().map_or("-".into(), percent), Some(Sort::Percent));
const SHARE: Column = ("SHARE", 10, share, None);
const DIRTY: Column =
    ("DIRTY", 8, |r, _| pages(r.totals.only_cachestat(r.totals.dirty), r), Some(Sort::Dirty));
const FILES: Column = ("FILES", 7, |r, _| files(r), Some(Sort::Files));

/// The columns for a width: names need some of it as well. PERCENT is of SIZE, so that one stays longer than DISK. What
/// the rows are sorted by takes the place of the last, where it has none.
fn columns(width: u16, sort: Sort) -> Vec<Column> {
    let of_width = columns_of(width);
    let sorted = columns_of(u16::MAX).iter().find(|c| c.3 == Some(sort));
    match sorted {
        Some(sorted) if of_width.len() > 1 && of_width.iter().all(|c| c.3 != sorted.3) => {
            [&of_width[..of_width.len() - 1], &[*sorted]].concat()
        }
        _ => of_width.to_vec(),
    }
}

const fn columns_of(width: u16) -> &'static [Column] {
    match width {
        100.. => &[SIZE, DISK, CACHED, PERCENT, SHARE, DIRTY, FILES],
        80.. => &[SIZE, CACHED, PERCENT, SHARE, FILES],
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

fn line(row: &Row, whole: Option<&Row>, marked: bool, columns: &[Column]) -> String {
    let name = row.path.file_name().unwrap_or_else(|| row.path.as_os_str());
    let slash = if row.kind == Kind::Directory { "/" } else { "" };
    let why = row.why.map_or(String::new(), |why| format!("  ({why})"));
    let mark = if marked { '*' } else { ' ' };
    let cells = cells(columns, |c| (c.2)(row, whole));
    format!("{mark}{cells} {}{slash}{why}", view::name(name.as_ref()))
}

/// The title of a column, with the direction if rows are in its order.
fn title(column: &Column, state: &State) -> String {
    // As long as any: columns stay where they are.
    let arrow = if state.reverse { "^" } else { "v" };
    if column.3 == Some(state.sort) { format!("{arrow}{}", column.0) } else { column.0.to_owned() }
}

/// Draws it; `progress` is how far what is under way has come.
pub(super) fn render(state: &State, progress: Option<&str>, frame: &mut Frame) {
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
    let what = if state.saved { "a saved scan: " } else { "" };
    let at = format!("{what}{}", view::name(&state.at));
    let at = end(&at, usize::from(width).saturating_sub(sum.len() + 2));
    // What has no room is cut with a mark: a number without one would be another number.
    let fit = |text: &str| spread(&beginning(text, width.into())).into_owned();
    frame.render_widget(Line::styled(fit(&format!("{at}  {sum}")), bold), head);
    if let Some(problem) = problem {
        frame.render_widget(Line::raw(fit(&format!(" {problem}"))), warning);
    }
    let name = if state.sort == Sort::Name { if state.reverse { "^NAME" } else { "vNAME" } } else { "NAME" };
    let titled = format!(" {} {name}", cells(&columns(width, state.sort), |c| title(c, state)));
    frame.render_widget(Line::styled(titled, Style::new().add_modifier(Modifier::UNDERLINED)), titles);
    rows(state, frame, list);
    frame.render_widget(Line::styled(fit(&hint(state, progress)), bold), foot);
    match state.mode() {
        Mode::Help => help(frame),
        Mode::Map(lines, top) => {
            let lines: Vec<_> = lines.iter().skip(*top).map(|l| Line::raw(spread(l))).collect();
            let area = Rect { height: frame.area().height.saturating_sub(1), ..frame.area() };
            frame.render_widget(Clear, area);
            frame.render_widget(Paragraph::new(lines), area);
        }
        _ => {}
    }
    settle(frame.buffer_mut());
}

/// What the last line says.
fn hint(state: &State, progress: Option<&str>) -> String {
    let (shown, all) = (state.shown.len(), state.listing.rows.len());
    match (state.mode(), state.busy) {
        (Mode::Confirm(deed, paths), _) => {
            let what = match &paths[..] {
                [one] => view::name(one),
                many => format!("{} files and directories", many.len()),
            };
            match deed {
                Deed::Evict => format!("drop {what} from the cache? y/n"),
                Deed::Flush => format!("write what is dirty of {what}, and drop all from the cache? y/n"),
                Deed::Load => format!("read {what} into the cache? y/n"),
            }
        }
        (Mode::Filter, _) => format!("/{}_  {shown} of {all}", state.filter),
        (Mode::Map(..), _) => "Up, Down, PgUp, PgDn; any other key: back".into(),
        _ if !state.message.is_empty() => state.message.clone(),
        (_, Some(busy)) => match progress.unwrap_or_default() {
            "" => format!("{busy} …"),
            far => format!("{busy}: {far} …"),
        },
        _ if !state.marked.is_empty() => {
            format!("{} marked: e evicts them, E writes first, L loads them", state.marked.len())
        }
        _ if !state.filter.is_empty() => format!("/{}  {shown} of {all}; Esc: all", state.filter),
        _ => "? help  q end  Enter into  h back  / filter  m map  Space mark  e evict  L load".into(),
    }
}

fn rows(state: &State, frame: &mut Frame, area: Rect) {
    let height = usize::from(area.height).max(1);
    // The cursor is kept in sight.
    let first = state.selected.saturating_sub(height - 1);
    let whole = state.listing.whole.as_ref();
    let columns = columns(area.width, state.sort);
    let shown = state.shown.iter().map(|i| &state.listing.rows[*i]).enumerate().skip(first).take(height);
    let lines: Vec<_> = shown
        .map(|(i, row)| {
            let style = if i == state.selected {
                Style::new().add_modifier(Modifier::REVERSED)
            } else {
                Style::new()
            };
            let marked = state.marked.contains(&row.path);
            let text = beginning(&line(row, whole, marked, &columns), area.width.into());
            Line::styled(spread(&text).into_owned(), style)
        })
        .collect();
    let nothing = match state.listing.problem {
        Some(_) => " what is here is not known",
        None if !state.listing.rows.is_empty() => " no name has these letters",
        None if state.busy.is_some() => " …",
        None => " nothing is here",
    };
    let text = if lines.is_empty() { Paragraph::new(nothing) } else { Paragraph::new(lines) };
    frame.render_widget(text, area);
}

fn help(frame: &mut Frame) {
    let lines: Vec<_> = KEYS
        .iter()
        .filter(|k| !k.help.is_empty())
        .map(|k| Line::raw(format!(" {:<16} {}", k.name, k.help)))
        .collect();
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
    use crate::options::OneOf as _;

    fn frame(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|f| render(state, state.busy.map(|_| "12 files"), f)).unwrap();
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
        act(&mut state, &mut fake, &[Action::Mark, Action::Act(Deed::Evict)]);
        insta::assert_snapshot!("confirm_80x8", frame(&state, 80, 8));
        act(&mut state, &mut fake, &[Action::No, Action::Help]);
        insta::assert_snapshot!("help_80x24", frame(&state, 80, 24));
        act(
            &mut state,
            &mut fake,
            &[Action::No, Action::Filter, Action::Type('i'), Action::Sort(Sort::Size)],
        );
        insta::assert_snapshot!("filter_80x8", frame(&state, 80, 8));
        act(&mut state, &mut fake, &[Action::No, Action::Move(9), Action::Map]);
        insta::assert_snapshot!("map_80x8", frame(&state, 80, 8));
        act(&mut state, &mut fake, &[Action::No]);
        state.update(Action::Rescan);
        insta::assert_snapshot!("busy_120x8", frame(&state, 120, 8));
    }

    #[test]
    fn what_rows_are_sorted_by_has_a_column() {
        let (mut state, mut fake) = started(Sort::Cached);
        for sort in Sort::ALL {
            if *sort != state.sort {
                act(&mut state, &mut fake, &[Action::Sort(*sort)]);
            }
            for width in [34, 48, 58, 72, 80, 100, 200] {
                let titles = frame(&state, width, 8).lines().nth(1).unwrap().to_owned();
                let mut words = titles.split_whitespace();
                assert!(words.any(|w| w.trim_matches('"').starts_with('v')), "{sort:?} {width}: {titles}");
                assert!(titles.contains("NAME"), "{titles}");
            }
        }
    }

    #[test]
    fn what_has_no_room_is_cut_with_a_mark() {
        let (state, _) = started(Sort::Cached);
        let text = frame(&state, 24, 8);
        let lines: Vec<&str> = text.lines().map(|l| l.trim_matches(['"', ' '])).collect();
        assert!(lines.first().unwrap().ends_with('…') && lines.last().unwrap().ends_with('…'), "{text}");
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
    #[test]
    fn letters_that_take_a_column_have_a_cell() {
        let (mut state, _) = started(Sort::Cached);
        state.at = "/r/ｶﾞকাx".into();
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|f| render(&state, None, f)).unwrap();
        let cells: Vec<_> = terminal.backend().buffer().content().iter().map(|c| c.symbol()).collect();
        assert_eq!(cells[2..9], ["/", "ｶ", "ﾞ", "ক", "া", "x", " "]);
    }
}
