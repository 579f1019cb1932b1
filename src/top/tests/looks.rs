//! How it looks: that tables line up, borders take no rows where they are few, and colours are the values.

use ratatui::buffer::Buffer;
use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

use super::frames::full;
use super::*;
use crate::live::machine::Machine;
use crate::live::machine::Pulse;
use crate::top::draw::heat::Depth;
use crate::top::keys as table;
use crate::top::table::Look;

fn drawn(app: &App, theme: &Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).unwrap();
    terminal.draw(|f| draw::draw(app, theme, f)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer, y: u16) -> String {
    (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect()
}

/// Where the figure of a row stands, and how it looks there.
fn style(app: &App, buffer: &Buffer, pid: &str, id: &str) -> Style {
    let (zones, layout) = (app.zones(), app.layout());
    let look = Look { layout: &layout, by: app.by(), numbers: app.numbers() };
    let wanted = crate::top::settings::Sort::Column(crate::columns::find(id).unwrap());
    let (_, end, _) = look.titles().1.into_iter().find(|(.., sort)| *sort == wanted).unwrap();
    let is = |y: &u16| text(buffer, *y).split_whitespace().any(|word| word == pid);
    let y = (zones.rows.y..zones.rows.bottom()).find(is).unwrap();
    buffer[(zones.rows.x + u16::try_from(end).unwrap() - 1, y)].style()
}

#[test]
fn figures_end_where_their_titles_end() {
    for size in [(80, 24), (100, 32), (120, 40), (200, 60)] {
        let mut app = app(size);
        let mut rows: Vec<_> = (1..=5).map(|i| process(i * 1111, "p", &reads(u64::from(i), 0, 1))).collect();
        // Names of two columns a character must not move what stands behind them.
        rows[1].who.user = Some("\u{7528}\u{6237}\u{540d}\u{79f0}\u{957f}".into());
        rows[1].who.container = Some("\u{5bb9}\u{5668}".into());
        app.take(snapshot(rows, fixtures::busy().total));
        for theme in [Theme::sixteen(), Theme { unicode: false, ..Theme::plain() }] {
            let buffer = drawn(&app, &theme);
            let (zones, layout) = (app.zones(), app.layout());
            let look = Look { layout: &layout, by: app.by(), numbers: app.numbers() };
            for (_, end, sort) in look.titles().1 {
                let crate::top::settings::Sort::Column(column) = sort else { continue };
                let x = zones.rows.x + u16::try_from(end).unwrap();
                assert_ne!(buffer[(x - 1, zones.titles.y)].symbol(), " ", "{size:?} {}", column.id);
                for y in zones.rows.y..zones.rows.y + 4 {
                    let line = text(&buffer, y);
                    assert_ne!(buffer[(x - 1, y)].symbol(), " ", "{size:?} {}: {line}", column.id);
                    assert_eq!(buffer[(x, y)].symbol(), " ", "{size:?} {}: {line}", column.id);
                }
            }
        }
    }
}

#[test]
fn borders_are_whole_and_nothing_is_written_over_them() {
    for keys in ["", "f", "h", "~", "/p", "p"] {
        for size in [(100, 32), (120, 40), (200, 60)] {
            let mut app = app(size);
            app.take(full());
            typed(&mut app, keys);
            let buffer = drawn(&app, &Theme::sixteen());
            // Below the borders of a table stands the line of keys.
            let last = if "fh~".contains(keys) && !keys.is_empty() { size.1 - 1 } else { size.1 - 2 };
            for y in 0..=last {
                let line: Vec<char> = text(&buffer, y).chars().collect();
                let sides = (line[0], *line.last().unwrap());
                let wanted = match y {
                    0 => sides == ('╭', '╮'),
                    y if y == last => sides == ('╰', '╯'),
                    _ => matches!(sides, ('│', '│') | ('├', '┤')),
                };
                assert!(wanted, "{keys} {size:?} {y}: {line:?}");
                // A title is not as dim as the border that it stands in.
                let title = matches!(sides, ('╭', _) | ('├', _)).then(|| buffer[(2, y)].style().add_modifier);
                assert!(title.is_none_or(|m| !m.contains(Modifier::DIM)), "{keys} {size:?} {y}");
            }
        }
    }
    // Where lines are few they are for rows.
    let mut small = app((80, 24));
    small.take(full());
    let frame = frame(&mut small);
    assert!(!frame.contains('│') && small.zones().rows.height >= 12, "{frame}");
}

#[test]
fn colours_are_values_at_every_depth() {
    for (depth, bad, good) in [
        (Depth::Sixteen, Some(Color::Red), Some(Color::Green)),
        (Depth::Many, Some(Color::Indexed(160)), Some(Color::Indexed(28))),
        (Depth::True, Some(Color::Rgb(234, 19, 19)), Some(Color::Rgb(11, 137, 11))),
        (Depth::None, None, None),
    ] {
        let theme = Theme { depth, ..Theme::plain() };
        for size in [(80, 24), (120, 40), (200, 60)] {
            let mut app = app(size);
            let rows = vec![
                process(11, "good", &reads(1_000_000, 0, 0)),
                process(12, "bad", &reads(0, 100, 0)),
                process(13, "misses", &reads(50, 0, 50)),
            ];
            app.take(snapshot(rows, fixtures::figures(&reads(1_000_050, 100, 50))));
            let buffer = drawn(&app, &theme);
            let fg = |pid, id| style(&app, &buffer, pid, id).fg.filter(|c| *c != Color::Reset);
            let bold = |pid, id| style(&app, &buffer, pid, id).add_modifier.contains(Modifier::BOLD);
            assert_eq!((fg("11", "hit_ratio"), fg("12", "hit_ratio")), (good, bad), "{depth:?}");
            assert_eq!(fg("13", "misses"), bad, "all of them: {depth:?}");
            assert_eq!(fg("11", "misses"), None, "none: {depth:?}");
            assert_eq!(fg("11", "hits"), None, "no colour where there is no meaning");
            // Without colours, what is bad is bold, and nothing else of a row.
            let mark = depth == Depth::None;
            assert_eq!((bold("12", "hit_ratio"), bold("13", "misses")), (mark, mark), "{depth:?}");
            assert!(!bold("11", "hit_ratio") && !bold("11", "hits"));
        }
    }
}

#[test]
fn where_everything_is_unknown_nothing_has_a_colour_of_a_value() {
    for size in [(80, 24), (120, 40)] {
        let mut app = app(size);
        let mut row = process(11, "p", &[]);
        row.figures = Figures::unknown();
        app.take(snapshot(vec![row], Figures::unknown()));
        let buffer = drawn(&app, &Theme::sixteen());
        for id in ["hit_ratio", "misses"] {
            assert_eq!(style(&app, &buffer, "11", id).fg, Some(Color::Reset), "{id}");
        }
    }
}

#[test]
fn the_help_teaches_all_views_and_keys_on_the_smallest_usual_screen() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let mut app = app(size);
        app.take(full());
        typed(&mut app, "h");
        let screen = frame(&mut app);
        for (key, about) in table::lines() {
            assert!(screen.contains(about), "{size:?}: {key} {about}\n{screen}");
        }
        // What does not fit is reached.
        app.input(&key(KeyCode::End));
        assert!(frame(&mut app).contains("says more"));
    }
    let mut narrow = app((60, 15));
    typed(&mut narrow, "h");
    assert!(frame(&mut narrow).contains("devices: what has to work"));
}

#[test]
fn the_arrow_tells_the_direction_everywhere() {
    for (size, arrows) in [((80, 24), ["▼", "▲"]), ((120, 40), ["▼", "▲"])] {
        let mut app = app(size);
        app.take(full());
        for (keys, arrow) in [(">>", arrows[0]), ("r", arrows[1])] {
            typed(&mut app, keys);
            let buffer = drawn(&app, &Theme::sixteen());
            let zones = app.zones();
            let status = text(&buffer, zones.status.y);
            assert!(status.contains(&format!("sorted by HITS {arrow}")), "{status}");
            let titles = text(&buffer, zones.titles.y);
            assert!(titles.contains(&format!("HITS{arrow}")), "{titles}");
        }
    }
}

#[test]
fn a_search_goes_from_row_to_row_and_hides_none() {
    let mut app = app((80, 24));
    app.take(full());
    let rows = app.slots.len();
    app.input(&key(KeyCode::F(3)));
    typed(&mut app, "postg");
    assert_eq!(app.selected, Some(Id::Number(1234)));
    assert!(frame(&mut app).contains("search: postg_"));
    for _ in 0..5 {
        typed(&mut app, "");
        app.input(&key(KeyCode::Backspace));
    }
    typed(&mut app, "worker");
    let first = app.at;
    app.input(&key(KeyCode::F(3)));
    assert_eq!((app.at, app.slots.len()), (first + 1, rows));
    // Behind the last one from the first.
    for _ in 0..70 {
        app.input(&key(KeyCode::F(3)));
    }
    assert_eq!(app.at, first + 1);
    typed(&mut app, "!");
    typed(&mut app, "~");
    assert_eq!(app.mode, crate::top::app::Mode::Table);
    app.input(&key(KeyCode::F(3)));
    typed(&mut app, "nobody");
    assert!(frame(&mut app).contains("no row is like that"));
    typed(&mut app, "^");
    assert_eq!(app.slots.len(), rows, "the others are still there");
}

#[test]
fn a_click_on_a_key_is_the_key() {
    use ratatui::crossterm::event::MouseButton;
    use ratatui::crossterm::event::MouseEvent;
    use ratatui::crossterm::event::MouseEventKind;
    let mut app = app((80, 24));
    app.take(full());
    let click = |x: u16| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        Event::Mouse(MouseEvent { kind, column: x, row: 23, modifiers: KeyModifiers::NONE })
    };
    let line = text(&drawn(&app, &Theme::sixteen()), 23);
    let at = |word: &str| u16::try_from(line.chars().collect::<String>().find(word).unwrap()).unwrap();
    app.input(&click(at("Help")));
    assert_eq!(app.mode, crate::top::app::Mode::Help(0));
    typed(&mut app, "^");
    assert_eq!(app.input(&click(at("Quit"))), [Effect::Quit]);
    app.input(&click(79));
    assert_eq!(app.mode, crate::top::app::Mode::Table, "beside them nothing happens");
}

#[test]
fn what_stands_beside_losses_ends_with_a_number_and_says_that_it_goes_on() {
    for width in [80, 100, 120, 160] {
        let mut app = app((width, 40));
        let mut lossy = snapshot(vec![process(7, "reader", &reads(5, 0, 0))], fixtures::busy().total);
        lossy.system.lost.by_reason = vec![("files_full".into(), 7)];
        app.take(lossy);
        let text = frame(&mut app);
        let line = text.lines().find(|l| l.contains("LOST 7 (files_full")).unwrap();
        let line = line.trim_matches(['"', '│', ' ']);
        let whole = line.contains("PSI mem") && line.contains("io ");
        let cut = line.ends_with(" …");
        assert!(whole != cut, "{width}: {text}");
        assert!(width > 100 || cut, "{width}: {text}");
    }
}

/// Meters stand at the right wherever there is room for them and for all that is told beside them, whatever the numbers are.
#[test]
fn meters_stay_beside_what_is_told() {
    for width in [104, 112, 120, 160, 200] {
        for read in [0, 1 << 30] {
            let mut app = app((width, 40));
            let mut known = snapshot(vec![process(7, "reader", &reads(5, 0, 0))], fixtures::busy().total);
            let machine = Machine { total: Some(8 << 30), dirty_limit: Some(1 << 30), ..Machine::default() };
            known.pulse = Some(Pulse { machine, read: Some(read), seconds: 1.0, ..Pulse::default() });
            app.take(known);
            let text = frame(&mut app);
            let line = text.lines().find(|l| l.contains("PSI mem")).unwrap();
            // Borders take four columns of it.
            assert_eq!(line.contains("dirty  "), width - 4 >= 105, "{width}: {text}");
            assert!(!line.contains('…'), "{width}: {text}");
        }
    }
}
