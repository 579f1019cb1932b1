//! Screens at several sizes: empty, full, and where not everything is known.

use super::*;
use crate::sample::Histograms;
use crate::top::app::Mode;
use crate::top::details::Details;
use crate::top::findings;

const SIZES: [(u16, u16); 5] = [(80, 24), (100, 32), (120, 40), (200, 60), (60, 15)];

pub(super) fn full() -> Snapshot {
    let mut rows = vec![
        process(31_337, "dd", &reads(8, 12_177, 257)),
        process(1234, "postgres", &reads(1_234_567, 0, 4)),
        process(4_194_303, "backup-of-everything", &reads(0, 0, 0)),
        process(77, "a\u{1b}[31m\n", &reads(192, 0, 60)),
    ];
    for (figure, n) in
        [(Figure::DirectReadBytes, 512 << 20), (Figure::WriteAccesses, 3000), (Figure::WriteHits, 2999)]
    {
        rows[2].figures.set(figure, Some(n));
    }
    rows.extend((0..70).map(|i| process(2000 + i, "worker", &reads(70 - u64::from(i), 1, 1))));
    let mut all = snapshot(rows, fixtures::busy().total);
    let entries = Arc::make_mut(&mut all.entries);
    entries[3].state = State::Ended;
    entries[4].state = State::Idle;
    all.ended = Some(1);
    all
}

fn some_unknown() -> Snapshot {
    let mut rows = vec![process(31_337, "dd", &reads(8, 12_177, 257)), process(5, "kworker/u8:1", &[])];
    rows[0].figures.set(Figure::WriteAccesses, None);
    rows[0].figures.set(Figure::DirectReadBytes, None);
    rows[1].figures = Figures::unknown();
    rows[1].who.uid = None;
    rows[1].who.user = None;
    rows[1].who.comm = None;
    snapshot(rows, Figures::unknown())
}

#[test]
fn empty() {
    for size in SIZES {
        let mut app = app(size);
        let waiting = frame(&mut app);
        assert!(waiting.contains("waiting for the first interval"));
        app.take(snapshot(Vec::new(), fixtures::figures(&[])));
        insta::assert_snapshot!(format!("empty_{}x{}", size.0, size.1), frame(&mut app));
    }
}

#[test]
fn busy() {
    for size in SIZES {
        let mut app = app(size);
        for i in 0..90_u64 {
            let mut some = snapshot(Vec::new(), fixtures::busy().total);
            for (figure, by) in
                [(Figure::Hits, 2), (Figure::ReadAheadHits, 3), (Figure::Misses, 4), (Figure::Dirtied, 19)]
            {
                some.system.total.set(figure, Some(i * i * by % 7000));
            }
            if i % 10 == 3 {
                some.system.total.set(Figure::Accesses, Some(0));
            }
            app.take(some);
        }
        app.take(full());
        insta::assert_snapshot!(format!("full_{}x{}", size.0, size.1), frame(&mut app));
    }
}

#[test]
fn not_everything_is_known() {
    for size in SIZES {
        let mut app = app(size);
        app.take(some_unknown());
        let text = frame(&mut app);
        assert!(!text.contains("100.00%") && !text.contains(" 0.00%"), "{text}");
        insta::assert_snapshot!(format!("unknown_{}x{}", size.0, size.1), text);
    }
}

#[test]
fn help_and_columns_and_filter() {
    let mut app = app((80, 24));
    app.take(full());
    typed(&mut app, "h");
    insta::assert_snapshot!("help", frame(&mut app));
    typed(&mut app, "^f");
    insta::assert_snapshot!("columns", frame(&mut app));
    typed(&mut app, "^/post");
    insta::assert_snapshot!("filter", frame(&mut app));
}

#[test]
fn details() {
    let mut app = app((100, 60));
    app.take(full());
    let effects = typed(&mut app, "~");
    assert!(frame(&mut app).contains("being looked up"));
    let Some(Effect::Details(by, id, who)) = effects.last() else { panic!("{effects:?}") };
    let figures =
        fixtures::figures(&[reads(16, 24_354, 514), vec![(Figure::ReadAheadPages, 24_400)]].concat());
    let file = Row {
        who: Who { path: Some("/srv/data/odd".into()), inode: Some(5), ..Who::default() },
        figures: figures.clone(),
        classic: None,
        back: None,
    };
    let who = (**who).clone();
    let pid = who.pid.unwrap();
    app.looked_up(Details {
        by: *by,
        id: id.clone(),
        who,
        findings: findings::find(&figures, 4096),
        since_start: Some(Row { figures, ..process(pid, "postgres", &[]) }),
        lists: [(By::File, vec![file]), (By::Thread, Vec::new())].map(list).to_vec(),
        latency: None,
        system_latency: None,
        files_counted: true,
        course: None,
        begun: None,
    });
    app.command_line(pid, Some("dd if=odd of=/dev/null bs=1M".into()));
    insta::assert_snapshot!("details", frame(&mut app));
    // Its own calls, where they are timed; the system's are of no interest then.
    let (mut own, mut system) = (Box::<Histograms>::default(), Box::<Histograms>::default());
    (own.hit[3], own.hit[4], own.miss[12]) = (120, 36, 9);
    system.hit[20] = 1_000_000;
    let mut details = app.open.as_ref().unwrap().details.clone().unwrap();
    (details.latency, details.system_latency) = (Some(own), Some(system.clone()));
    app.looked_up(details.clone());
    let text = frame(&mut app);
    assert!(
        text.contains("latency of its read calls") && text.contains("120 ") && !text.contains("1.0M"),
        "{text}"
    );
    (details.latency, details.system_latency) = (None, Some(system));
    app.looked_up(details);
    let text = frame(&mut app);
    assert!(text.contains("not by file); of the whole system") && text.contains("1.0M"), "{text}");
    // The process ends: what was learnt stays.
    app.command_line(pid, None);
    assert!(frame(&mut app).contains("bs=1M"));
}

#[test]
fn a_long_command_line_leaves_room_for_the_rest_and_is_whole_at_the_end() {
    let classes: Vec<_> = (0..200).map(|i| format!("/opt/app/lib/some-library-{i}-1.2.jar")).collect();
    let line = format!("java -server -cp {} com.example.Main --last", classes.join(":"));
    for (width, height) in [(80, 24), (120, 40), (200, 60), (60, 15)] {
        let mut app = app((width, height));
        app.take(full());
        typed(&mut app, "~");
        let pid = app.open.as_ref().and_then(|o| o.who.pid).unwrap();
        app.command_line(pid, Some(line.as_str().into()));
        let text = frame(&mut app);
        assert!(text.contains("java -server") && text.contains("user  "), "{text}");
        assert!(text.contains('…') && !text.contains("com.example.Main"), "{text}");
        let (by, id, who) = app.open.as_ref().map(|o| (o.by, o.id.clone(), o.who.clone())).unwrap();
        let nothing = Details {
            by,
            id,
            who,
            findings: Vec::new(),
            since_start: None,
            lists: Vec::new(),
            latency: None,
            system_latency: None,
            files_counted: true,
            course: None,
            begun: None,
        };
        app.looked_up(nothing);
        app.resized((width, 60 + 16_000 / width));
        let text = frame(&mut app);
        let (_, whole) = text.split_once("all of the command line").unwrap();
        let words: String = whole.split(|c: char| c.is_whitespace() || "│╰╯─\"".contains(c)).collect();
        assert!(words.contains(&line.replace(' ', "")), "{text}");
    }
}

#[test]
fn long_names_are_folded_and_the_list_of_columns_is_whole() {
    let mut app = app((60, 60));
    let path = format!("/srv/{}", "directory/".repeat(20));
    let mut all = full();
    all.view.by = By::File;
    let who = Who { path: Some(path.as_str().into()), inode: Some(5), ..Who::default() };
    all.entries =
        Arc::new(vec![Entry::new(By::File, Row { who, ..process(1, "", &reads(9, 0, 0)) }, State::Active)]);
    app.take(all);
    typed(&mut app, "~");
    let text = frame(&mut app);
    let folded: String = text.lines().filter_map(|l| l.trim_matches('"').trim_end().get(14..)).collect();
    assert!(folded.contains(&path), "{text}");
    assert!(line_with(&text, "file  /srv/").contains('…') && text.contains("(Esc: back)"), "{text}");
    typed(&mut app, "^f");
    let text: String = frame(&mut app).split_whitespace().collect::<Vec<_>>().join(" ").replace("\" \"", "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("went through the cache after all"), "{text}");
}

fn line_with<'a>(text: &'a str, part: &str) -> &'a str {
    text.lines().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no {part} in\n{text}"))
}

#[test]
fn threads_hang_below_their_process() {
    let mut app = app((80, 24));
    let mut all = snapshot(vec![process(10, "big", &reads(30, 0, 0))], fixtures::busy().total);
    for (tid, hits) in [(11, 10), (10, 20)] {
        let mut row = process(10, "worker", &reads(hits, 0, 0));
        row.who.tid = Some(tid);
        Arc::make_mut(&mut all.threads).push(Entry::new(By::Thread, row, State::Active));
    }
    app.take(all);
    let text = frame(&mut app);
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("big") || l.contains("worker")).collect();
    assert!(
        lines[0].contains("big") && lines[1].contains("├─ worker") && lines[2].contains("└─ worker"),
        "{text}"
    );
    assert!(lines[1].contains("20 ") && lines[2].contains("     11 "), "{text}");
}

#[test]
fn a_terminal_without_colours_or_signs_gets_none() {
    let mut app = app((80, 24));
    app.take(full());
    typed(&mut app, "p");
    let theme = Theme { unicode: false, ..Theme::plain() };
    let text = frame_as(&mut app, &theme);
    assert!(text.is_ascii(), "{text}");
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|f| draw::draw(&app, &theme, f)).unwrap();
    let reset = ratatui::style::Color::Reset;
    assert!(terminal.backend().buffer().content().iter().all(|c| c.fg == reset && c.bg == reset));
}

#[test]
fn a_terminal_that_changes_its_size_while_a_frame_is_drawn_gets_the_next_one() {
    let sizes = [(0, 0), (1, 1), (500, 2), (2, 500), (80, 24), (120, 40), (200, 60)];
    for (wanted, there) in sizes.into_iter().flat_map(|a| sizes.map(|b| (a, b))) {
        let mut app = app(wanted);
        app.take(super::keys::rows(&[(7, 500), (8, 40)]));
        for mode in [Mode::Table, Mode::Help(0), Mode::Columns(0), Mode::Details(0), Mode::Search] {
            app.mode = mode;
            let mut terminal = Terminal::new(TestBackend::new(there.0, there.1)).unwrap();
            terminal.draw(|f| draw::draw(&app, &Theme::sixteen(), f)).unwrap();
        }
    }
}

/// As the drawing library has them, each of these is a part of the letter before, and what follows stands a column further on.
#[test]
fn letters_that_take_a_column_have_a_cell() {
    let mut app = app((80, 24));
    typed(&mut app, "/ｶﾞকাx");
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|f| draw::draw(&app, &Theme::sixteen(), f)).unwrap();
    let cells: Vec<_> = terminal.backend().buffer().content().iter().map(|c| c.symbol()).collect();
    let wanted = ["ｶ", "ﾞ", "ক", "া", "x", "_", " "];
    assert!(cells.windows(wanted.len()).any(|w| w == wanted), "{cells:?}");
    let theme = Theme { unicode: false, ..Theme::plain() };
    assert!(frame_as(&mut app, &theme).contains("filter: ????x_ "));
}
