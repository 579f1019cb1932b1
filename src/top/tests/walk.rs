//! From row to row on the pages of details.

use super::keys::rows;
use super::*;
use crate::top::app::Mode;
use crate::top::details::Details;
use crate::top::details::List;
use crate::top::findings;
use crate::top::links::Link;

fn file(path: &str, inode: u64, values: &[(Figure, u64)]) -> Row {
    let who =
        Who { path: Some(path.into()), inode: Some(inode), device: Some("8:1".into()), ..Who::default() };
    Row { who, figures: fixtures::figures(values), classic: None, back: None }
}

/// What the thread that samples would answer.
fn answer(app: &mut App, effects: &[Effect], lists: Vec<(By, Vec<Row>)>, figures: &[(Figure, u64)]) {
    let Some(Effect::Details(by, id, who)) = effects.last() else { panic!("{effects:?}") };
    let figures = fixtures::figures(figures);
    let findings = findings::find(&figures, 4096);
    let lists = lists.into_iter().map(|(by, rows)| List::new(by, rows, &findings)).collect();
    app.looked_up(Details {
        by: *by,
        id: id.clone(),
        who: (**who).clone(),
        findings,
        since_start: Some(Row { who: (**who).clone(), figures, classic: None, back: None }),
        lists,
        latency: None,
        system_latency: None,
        files_counted: true,
        course: None,
        begun: None,
    });
}

fn chosen(app: &App) -> Option<&Link> {
    app.open.as_ref().unwrap().chosen.as_ref()
}

fn press(app: &mut App, code: KeyCode, times: usize) -> Vec<Effect> {
    (0..times).map(|_| app.input(&key(code))).last().unwrap_or_default()
}

#[test]
fn from_a_process_to_a_file_and_to_who_reads_it_and_back() {
    let mut app = app((120, 60));
    app.take(rows(&[(7, 500), (8, 40)]));
    let effects = typed(&mut app, "~");
    let two = [file("/srv/a\u{1b}[2J", 5, &reads(0, 0, 10)), file("/srv/b", 6, &reads(0, 0, 900))];
    answer(&mut app, &effects, vec![(By::File, two.to_vec()), (By::Thread, Vec::new())], &reads(0, 0, 910));
    // The finding leads to the file that has the most of it, whichever stands first.
    assert!(app.input(&key(KeyCode::Enter)).is_empty(), "nothing is chosen yet");
    press(&mut app, KeyCode::Down, 1);
    assert_eq!(chosen(&app), Some(&Link::Finding(0)));
    let effects = app.input(&key(KeyCode::Enter));
    let Some(Effect::Details(By::File, _, who)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(who.path.as_ref().unwrap().raw(), "/srv/b");
    // Escape goes back to what was chosen there, twice to the table.
    assert!(matches!(press(&mut app, KeyCode::Esc, 1).last(), Some(Effect::Details(By::Process, ..))));
    assert_eq!((app.mode, chosen(&app)), (Mode::Details(0), Some(&Link::Finding(0))));
    press(&mut app, KeyCode::Down, 1);
    let effects = app.input(&key(KeyCode::Enter));
    let readers = vec![(By::Process, vec![process(8, "reader", &reads(0, 0, 10))])];
    answer(&mut app, &effects, readers, &reads(0, 0, 10));
    assert!(frame(&mut app).contains("file  /srv/a\\x1b[2J"), "{}", frame(&mut app));
    press(&mut app, KeyCode::Down, 1);
    let effects = app.input(&key(KeyCode::Enter));
    assert!(matches!(effects.last(), Some(Effect::Details(By::Process, _, who)) if who.pid == Some(8)));
    assert_eq!(app.trail.len(), 2);
    // The figures of the interval are those of the rows of the table, of which a file is none.
    press(&mut app, KeyCode::Backspace, 1);
    assert!(!frame(&mut app).contains("interval  since start"));
    press(&mut app, KeyCode::Esc, 2);
    assert_eq!((app.mode, app.open.is_none(), app.trail.len()), (Mode::Table, true, 0));
}

/// Of a long list the page shows the busiest; how many there are, and what proves a finding, is known of all.
#[test]
fn a_long_list_says_how_many_more_there_are_and_a_finding_leads_to_any_of_them() {
    let mut app = app((120, 60));
    app.take(rows(&[(7, 500)]));
    let effects = typed(&mut app, "~");
    let one = |n: u64| {
        let figures = if n == 99 { reads(0, 0, 900) } else { reads(0, 1000, 0) };
        file(&format!("/srv/{n}"), n + 1, &figures)
    };
    answer(&mut app, &effects, vec![(By::File, (0..137).map(one).collect())], &reads(0, 100, 900));
    press(&mut app, KeyCode::Down, 1);
    assert_eq!(chosen(&app), Some(&Link::Finding(0)));
    let effects = app.input(&key(KeyCode::Enter));
    let Some(Effect::Details(By::File, _, who)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(who.path.as_ref().unwrap().raw(), "/srv/99");
    press(&mut app, KeyCode::Esc, 1);
    app.input(&key(KeyCode::End));
    let text = frame(&mut app);
    assert!(text.contains("and 117 more") && !text.contains("/srv/99"), "{text}");
}

#[test]
fn what_to_run_next_is_printed_and_run() {
    let mut app = app((100, 24));
    app.take(rows(&[(7, 500)]));
    let effects = typed(&mut app, "~");
    answer(&mut app, &effects, Vec::new(), &[]);
    // Scrolled to, however far below.
    press(&mut app, KeyCode::Down, 60);
    let words = ["cachedu", "--pid", "7"].map(std::ffi::OsString::from).to_vec();
    assert!(frame(&mut app).contains("cachestat -p 7 --for 10s"), "{}", frame(&mut app));
    assert_eq!(app.input(&key(KeyCode::Enter)), [Effect::Run(words)]);
    // What was recorded is of another time, perhaps of another machine.
    app.scene.replay = Some(crate::top::scene::Replayed {
        recorded: std::time::Duration::ZERO,
        kept: std::time::Duration::ZERO,
    });
    assert!(app.input(&key(KeyCode::Enter)).is_empty());
    assert!(!frame(&mut app).contains("what to run next"));
}

#[test]
fn a_row_that_is_gone_is_not_gone_to() {
    let mut app = app((100, 50));
    app.take(rows(&[(7, 500)]));
    let effects = typed(&mut app, "~");
    answer(&mut app, &effects, vec![(By::File, vec![file("/srv/a", 5, &reads(0, 0, 10))])], &[]);
    press(&mut app, KeyCode::Down, 1);
    assert!(matches!(chosen(&app), Some(Link::Row(By::File, _))));
    answer(&mut app, &effects, vec![(By::File, vec![file("/srv/b", 6, &reads(0, 0, 10))])], &[]);
    assert!(app.input(&key(KeyCode::Enter)).is_empty());
    assert!(app.open.as_ref().unwrap().by == By::Process);
    // Another kind of rows ends the walk.
    typed(&mut app, "f");
    assert!(app.open.is_none() && app.trail.is_empty());
}

/// Its number is another's by now, of which nothing belongs on the page, nor may a command be run on it.
#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut app = app((120, 60));
    app.take(rows(&[(7, 500), (8, 40)]));
    let effects = typed(&mut app, "~");
    answer(&mut app, &effects, vec![(By::File, vec![file("/srv/first", 5, &[])])], &reads(0, 0, 910));
    let mut details = app.open.as_ref().unwrap().details.clone().unwrap();
    let mut told = |app: &mut App, begun, path: &str| {
        details.begun = begun;
        details.lists = vec![List::new(By::File, vec![file(path, 6, &reads(0, 0, 3))], &[])];
        app.looked_up(details.clone());
        frame(app)
    };
    for begun in [Some(1), None] {
        let text = told(&mut app, begun, "/srv/first");
        assert!(text.contains("/srv/first") && text.contains("cachestat -p 7"), "{text}");
    }
    for begun in [Some(2), None, Some(2)] {
        let text = told(&mut app, begun, "/srv/second");
        assert!(text.contains("another process has its number") && text.contains("/srv/first"), "{text}");
        assert!(!text.contains("/srv/second") && !text.contains("cachestat -p 7"), "{text}");
    }
}
