//! What keys and the mouse do to the state.

use proptest::prelude::*;
use ratatui::crossterm::event::MouseButton;
use ratatui::crossterm::event::MouseEvent;
use ratatui::crossterm::event::MouseEventKind;

use super::*;
use crate::cgroup::Held;
use crate::top::app::Mode;
use crate::top::table::Slot;

pub(super) fn rows(hits: &[(u32, u64)]) -> Snapshot {
    let rows = hits.iter().map(|(pid, n)| process(*pid, "p", &reads(*n, 0, 0))).collect();
    snapshot(rows, fixtures::busy().total)
}

fn order(app: &App) -> Vec<u32> {
    app.slots.iter().filter_map(|s| app.row(*s)).filter_map(|(row, _)| row.who.pid).collect()
}

#[test]
fn the_selected_row_keeps_its_place_while_values_change() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50), (2, 40), (3, 30), (4, 20)]));
    app.input(&key(KeyCode::Down));
    app.input(&key(KeyCode::Down));
    assert_eq!(app.selected, Some(Id::Number(2)));
    app.take(rows(&[(1, 50), (2, 1), (3, 30), (4, 200)]));
    assert_eq!(order(&app), [4, 2, 1, 3]);
    assert_eq!((app.selected.clone(), app.at), (Some(Id::Number(2)), 1));
    // Let go, it goes where it belongs.
    app.input(&key(KeyCode::Esc));
    assert_eq!(order(&app), [4, 1, 3, 2]);
    assert_eq!(app.selected, None);
}

#[test]
fn another_order_is_seen_from_its_top() {
    let mut app = app((80, 24));
    let many: Vec<_> = (1..=100).map(|i| (i, u64::from(i))).collect();
    for keys in [">", "r", "/p~", "<"] {
        app.take(rows(&many));
        app.input(&key(KeyCode::End));
        assert_eq!(app.at, app.slots.len() - 1);
        let effects = typed(&mut app, keys);
        assert_eq!((app.at, app.offset), (0, 0), "{keys}");
        let first = app.id(app.slots[0]).cloned();
        assert_eq!(app.selected, first, "{keys}: the first row is selected");
        assert!(effects.contains(&Effect::Watch(first)), "{keys}: {effects:?}");
    }
    // Nothing was selected: nothing is, and the busiest rows go on to be the first.
    app.input(&key(KeyCode::Esc));
    app.input(&key(KeyCode::Esc));
    typed(&mut app, "r");
    assert_eq!((app.selected.clone(), app.offset), (None, 0));
}

#[test]
fn rows_that_are_not_seen_come_in_order_when_they_are() {
    let mut app = app((80, 24));
    let many: Vec<_> =
        (1..=5000_u32).map(|i| (i, u64::from(i.wrapping_mul(2_654_435_761) % 65_521))).collect();
    let mut expected = many.clone();
    expected.sort_by_key(|(pid, n)| (std::cmp::Reverse(*n), *pid));
    let expected: Vec<u32> = expected.into_iter().map(|(pid, _)| pid).collect();
    app.take(rows(&many));
    let page = app.page();
    assert_eq!(order(&app)[..page], expected[..page]);
    for _ in 0..5 {
        app.input(&key(KeyCode::PageDown));
        let seen = &order(&app)[app.offset..app.offset + page];
        assert_eq!(seen, &expected[app.offset..app.offset + page]);
    }
    app.input(&key(KeyCode::Esc));
    app.input(&key(KeyCode::End));
    assert_eq!(order(&app), expected);
}

#[test]
fn garbage_that_is_pasted_does_no_harm() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50)]));
    let garbage = "q\u{1b}[31mW\n\0".repeat(100_000);
    assert!(app.input(&Event::Paste(garbage.clone())).is_empty(), "nothing is being written");
    typed(&mut app, "/");
    app.input(&Event::Paste(garbage));
    assert!(app.filter.chars().count() <= 200 && !app.filter.contains(char::is_control));
    frame(&mut app);
}

#[test]
fn what_is_pasted_is_looked_for() {
    let mut app = app((80, 24));
    app.take(rows(&[(10, 50), (25, 40), (30, 3)]));
    app.input(&key(KeyCode::F(3)));
    assert_eq!(app.mode, Mode::Search);
    app.input(&Event::Paste("2\n5".into()));
    assert_eq!((app.search.as_str(), app.selected.clone()), ("25", Some(Id::Number(25))));
    app.input(&Event::Paste("x".repeat(1000)));
    assert_eq!(app.search.chars().count(), 200);
}

/// The title of a column that rows cannot be sorted by is not one of another column.
#[test]
fn a_title_sorts_by_its_own_column_or_not_at_all() {
    let mut app = app((120, 40));
    app.take(rows(&[(2, 50), (1, 40)]));
    let y = app.zones().titles.y;
    let click = |app: &mut App, title: &str| {
        let text = frame(app);
        let line = text.lines().nth(y.into()).unwrap();
        // Behind the quotation mark before each line.
        let x = line[..line.find(title).unwrap()].chars().count() - 1;
        let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
        let column = u16::try_from(x).unwrap();
        app.input(&Event::Mouse(MouseEvent { kind, column, row: y, modifiers }));
        order(app)
    };
    assert_eq!(click(&mut app, "USER"), [2, 1]);
    assert_eq!(app.settings.sort.name(), "busy");
    assert_eq!(click(&mut app, "PID"), [1, 2]);
    assert_eq!(click(&mut app, "USER"), [1, 2]);
    assert!(!app.settings.reverse);
}

#[test]
fn escape_that_came_together_with_the_next_key_is_both() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50)]));
    typed(&mut app, "~");
    assert_eq!(app.mode, Mode::Details(0));
    app.input(&Event::Key(KeyEvent::new(KeyCode::Char('h'), KeyModifiers::ALT)));
    assert_eq!((app.mode, app.open.is_some()), (Mode::Help(0), false));
    app.input(&key(KeyCode::Esc));
    typed(&mut app, "/p");
    app.input(&Event::Key(KeyEvent::new(KeyCode::Up, KeyModifiers::ALT)));
    assert_eq!(app.filter, "p", "no Escape in it");
    let quit = app.input(&Event::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)));
    assert_eq!(quit.last(), Some(&Effect::Quit));
}

#[test]
fn keys_without_a_meaning_close_nothing() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50)]));
    typed(&mut app, "~xX");
    assert_eq!(app.mode, Mode::Details(0));
    typed(&mut app, "^f");
    for (code, expected) in [(KeyCode::End, app.all_columns().len() - 1), (KeyCode::Home, 0)] {
        app.input(&key(code));
        assert_eq!(app.mode, Mode::Columns(expected));
    }
    app.input(&key(KeyCode::PageDown));
    assert!(matches!(app.mode, Mode::Columns(10..)));
}

#[test]
fn threads_are_no_rows_where_some_files_count_only() {
    let mut app = app((80, 24));
    app.scene.by_file = true;
    app.take(rows(&[(1, 50)]));
    assert!(!app.pivots().contains(&By::Thread));
    assert!(typed(&mut app, "2").is_empty());
    assert!(frame(&mut app).contains("there are no rows of threads"));
    assert!(typed(&mut app, "t").is_empty() && !app.settings.threads);
    assert!(app.columns().iter().all(|c| c.id != "refaulted"), "not counted by file");
}

#[test]
fn without_a_selection_the_screen_shows_the_busiest() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50), (2, 40)]));
    app.take(rows(&[(1, 50), (2, 400)]));
    assert_eq!((order(&app), app.offset), (vec![2, 1], 0));
}

#[test]
fn what_is_unknown_comes_last_whichever_way_round() {
    let mut app = app((80, 24));
    let mut all = rows(&[(1, 50), (2, 40)]);
    let unknown = Row { figures: Figures::unknown(), ..process(3, "?", &[]) };
    Arc::make_mut(&mut all.entries).push(Entry::new(By::Process, unknown, State::Active));
    app.take(all);
    typed(&mut app, ">>");
    assert_eq!(app.settings.sort.name(), "hits");
    assert_eq!(order(&app), [1, 2, 3]);
    typed(&mut app, "r");
    assert_eq!(order(&app), [2, 1, 3]);
}

#[test]
fn the_filter_works_as_it_is_typed() {
    let mut app = app((80, 24));
    app.take(snapshot(
        vec![process(10, "postgres", &reads(5, 0, 0)), process(21, "dd", &reads(9, 0, 0))],
        fixtures::busy().total,
    ));
    typed(&mut app, "/POST");
    assert_eq!(order(&app), [10]);
    // While it is written, letters are letters.
    assert!(typed(&mut app, "q").is_empty());
    app.input(&key(KeyCode::Backspace));
    typed(&mut app, "~");
    assert_eq!((order(&app), app.mode), (vec![10], Mode::Table));
    typed(&mut app, "^");
    assert_eq!(order(&app), [21, 10]);
    typed(&mut app, "/21~");
    assert_eq!(order(&app), [21], "numbers are looked at, too");
}

#[test]
fn pause_holds_the_picture_and_the_history_goes_on() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50)]));
    assert_eq!(typed(&mut app, "p"), [Effect::Hold(true)]);
    assert!(!app.take(rows(&[(2, 60)])));
    assert_eq!((order(&app), app.history.len()), (vec![1], 2));
    let effects = typed(&mut app, "p");
    assert_eq!(effects, [Effect::Hold(false), Effect::View(View { ended: Ended::Command, ..VIEW })]);
    app.take(rows(&[(2, 60)]));
    assert_eq!(order(&app), [2]);
}

#[test]
fn what_cannot_be_shown_is_said() {
    let mut app = app((80, 24));
    app.scene.files = false;
    app.take(rows(&[(1, 50)]));
    assert!(typed(&mut app, "6").is_empty());
    assert!(frame(&mut app).contains("files are not counted: it was started with --no-files"));
    assert_eq!(app.pivots(), [By::Process, By::Thread, By::Comm, By::User, By::Cgroup]);
}

#[test]
fn columns_are_hidden_ordered_and_never_all_gone() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50)]));
    let ids = |app: &App| app.columns().iter().map(|c| c.id).collect::<Vec<_>>();
    typed(&mut app, "f >");
    // HITS is hidden, then MISSES comes before RAHITS? The first is RAHITS now, and it moved to the right.
    assert_eq!(ids(&app)[..3], ["misses", "readahead_hits", "dirtied"]);
    typed(&mut app, "d");
    assert_eq!(ids(&app)[..2], ["hits", "readahead_hits"]);
    for _ in 0..60 {
        app.mode = Mode::Columns(0);
        typed(&mut app, " ");
    }
    assert_eq!(ids(&app).len(), 1);
}

#[test]
fn a_click_on_a_title_sorts_and_on_a_row_selects() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 50), (2, 40), (3, 30)]));
    let zones = app.zones();
    let click = |x: u16, y: u16| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        Event::Mouse(MouseEvent { kind, column: x, row: y, modifiers: KeyModifiers::NONE })
    };
    // PID is seven wide, UID five, HITS six.
    app.input(&click(17, zones.titles.y));
    assert_eq!((app.settings.sort.name(), app.settings.reverse), ("hits", false));
    app.input(&click(17, zones.titles.y));
    assert_eq!((order(&app), app.settings.reverse), (vec![3, 2, 1], true));
    let effects = app.input(&click(3, zones.rows.y + 1));
    assert_eq!(effects, [Effect::Watch(Some(Id::Number(2)))]);
    app.input(&click(3, zones.rows.y + 1));
    assert_eq!(app.mode, Mode::Details(0));
    app.input(&click(3, zones.rows.y + 20));
}

#[test]
fn the_first_row_of_a_long_table_scrolls_into_sight_and_out() {
    let mut app = app((80, 24));
    let many: Vec<_> = (1..=1000).map(|i| (i, u64::from(2000 - i))).collect();
    app.take(rows(&many));
    let page = app.page();
    app.input(&key(KeyCode::End));
    assert_eq!((app.at, app.offset), (999, 1000 - page));
    app.input(&key(KeyCode::Home));
    assert_eq!((app.at, app.offset), (0, 0));
    app.input(&key(KeyCode::PageDown));
    assert_eq!(app.at, page);
    // Fewer rows than before: the screen is not left empty.
    app.take(rows(&many[..3]));
    assert_eq!(app.offset, 0);
    assert!(app.slots.iter().all(|s| matches!(s, Slot::Entry(_))));
}

proptest! {
    /// Whatever is typed, however the window is dragged, whatever comes: there is a frame.
    #[test]
    fn nothing_breaks_the_screen(steps in proptest::collection::vec((0_u8..8, any::<u16>(), any::<u16>()), 0..60)) {
        let mut app = app((80, 24));
        for (kind, a, b) in steps {
            match kind {
                0 => {
                    let n = a % 80;
                    let list: Vec<_> = (0..n).map(|i| (u32::from(i ^ (b % 7)), u64::from(i) * u64::from(b))).collect();
                    app.take(rows(&list));
                }
                1 => drop(app.input(&Event::Resize(a % 220, b % 70))),
                2 => {
                    let kind = match b % 3 {
                        0 => MouseEventKind::ScrollDown,
                        1 => MouseEventKind::ScrollUp,
                        _ => MouseEventKind::Down(MouseButton::Left),
                    };
                    let at = MouseEvent { kind, column: a % 220, row: b % 70, modifiers: KeyModifiers::NONE };
                    app.input(&Event::Mouse(at));
                }
                3 => drop(app.input(&key([KeyCode::Esc, KeyCode::Enter, KeyCode::Tab, KeyCode::End][usize::from(a % 4)]))),
                4 => drop(app.input(&key([KeyCode::Up, KeyCode::Down, KeyCode::PageDown, KeyCode::Right][usize::from(a % 4)]))),
                _ => drop(app.input(&key(KeyCode::Char(char::from(32 + (a % 95) as u8))))),
            }
            if app.size.0 > 0 && app.size.1 > 0 {
                frame(&mut app);
            }
        }
    }
}

#[test]
fn a_letter_that_does_nothing_says_what_does() {
    let mut app = app((80, 24));
    app.take(rows(&[(1, 2)]));
    typed(&mut app, "d");
    assert!(frame(&mut app).contains("+ and - change the length"), "{}", frame(&mut app));
    // Not where letters are typed.
    let mut app = super::app((80, 24));
    app.take(rows(&[(1, 2)]));
    typed(&mut app, "/d");
    assert!(!frame(&mut app).contains("+ and - change the length"), "{}", frame(&mut app));
}

/// What cgroups hold of the cache is asked of those on the screen, once an interval, and shown where it is known.
#[test]
fn cgroups_on_the_screen_are_asked_what_they_hold() {
    let group = |n: u64| {
        let who = Who { cgroup: Some(format!("/g{n}\u{1b}").into()), ..Who::default() };
        let row = Row { who, ..process(1, "", &reads(900 - n, 0, 1)) };
        Entry::new(By::Cgroup, row, State::Active)
    };
    let shown = |number: u64| {
        let mut all = snapshot(Vec::new(), fixtures::busy().total);
        all.view.by = By::Cgroup;
        all.entries = Arc::new((0..200).map(group).collect());
        all.number = number;
        all
    };
    let mut app = app((120, 30));
    app.settings.by = By::Cgroup;
    app.take(shown(1));
    frame(&mut app);
    let asked = app.asks_held();
    assert!((10..=30).contains(&asked.len()) && asked.contains(&"/g0\u{1b}".into()), "{asked:?}");
    assert_eq!(app.asks_held(), [""; 0], "once");
    let known = Held { file: Some(300 << 20), limit: None };
    let other = Held { file: Some(5 << 30), limit: Some(6 << 30) };
    assert!(app.held(vec![("/g0\u{1b}".into(), known), ("/g1\u{1b}".into(), other)]));
    let text = frame(&mut app);
    let line = |part: &str| text.lines().find(|l| l.contains(part)).unwrap().to_owned();
    assert!(line("/g0").contains("300.0M      - "), "{text}");
    assert!(line("/g1").contains("5.0G   6.0G "), "{text}");
    assert!(line("/g2").contains("     -      - "), "{text}");
    // Those that come into sight are asked for themselves, and in the next interval all that are seen.
    typed(&mut app, "G");
    frame(&mut app);
    assert!(app.asks_held().contains(&"/g199\u{1b}".into()));
    app.take(shown(2));
    frame(&mut app);
    assert!((10..=30).contains(&app.asks_held().len()));
    // Nobody sorts by what is known of a few.
    assert!(crate::top::settings::Sort::parse("held_bytes").unwrap_err().contains("none are sorted by it"));
    assert!(!(0..30).any(|_| {
        typed(&mut app, ">");
        app.settings.sort.name() == "held_bytes"
    }));
    // Another kind of rows has none of it.
    typed(&mut app, "1");
    app.take(rows(&[(1, 2)]));
    assert_eq!(app.asks_held(), [""; 0]);
}
