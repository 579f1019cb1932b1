//! A moment that was marked: what is written is what was seen, and `--replay` reads it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::writer::Writer;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::sample::Source as _;
use crate::view::fixtures::Made;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// The n-th interval has n hits, some of them of a process that is called as no terminal would like it.
fn samples(number: u64) -> Vec<Sample> {
    let start = Moment::now();
    let made = |n: u64| {
        let mut out =
            fixtures::sample(start, Duration::from_secs(n), &[(Counter::ReadHits, n * (n + 1) / 2)]);
        if n > 0 {
            out.rows = vec![
                fixtures::process(1, "reader", &[(Counter::ReadHits, n.div_ceil(2))]),
                fixtures::process(2, "\u{1b}[2J\n", &[(Counter::ReadHits, n / 2)]),
            ];
            out.rows.retain(|r| r.counters.get(Counter::ReadHits) > 0);
        }
        out
    };
    (0..=number).map(made).collect()
}

fn pivot() -> Pivot {
    Pivot {
        by: None,
        top: usize::MAX,
        filter: Filter::default(),
        names: Box::<fixtures::FakeNames>::default(),
    }
}

fn keep(keeper: &mut Keeper<'_>, path: &Path, marks: &[u64]) -> anyhow::Result<usize> {
    let writer = Writer::file(path, Duration::from_secs(1));
    keeper.keep(writer.map_err(|failure| anyhow::anyhow!(failure.message))?, marks)
}

/// Hits and rows of each interval, and what was said.
fn replayed(path: &Path) -> (Vec<(u64, usize)>, Vec<String>) {
    let said = Rc::new(RefCell::new(Vec::new()));
    let listener = said.clone();
    let say = Box::new(move |text: &str| listener.borrow_mut().push(text.to_owned()));
    let mut opened = Replay::open(path, &Part::default(), say).unwrap();
    let mut before = opened.replay.sample().unwrap();
    let mut out = Vec::new();
    while opened.clock.until(Instant::now()).unwrap() != Wake::Over {
        let now = opened.replay.sample().unwrap();
        out.push((now.total.since(&before.total).get(Counter::ReadHits), now.rows.len()));
        before = now;
    }
    let said = said.borrow().clone();
    (out, said)
}

#[test]
fn what_is_kept_is_what_was_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.record");
    let mut source = Made(samples(40).into(), fixtures::plan(&[]));
    let keeper = Keeper::new(&mut source, pivot(), true, Box::new(|_| true)).unwrap();
    let mut keeper = keeper.with_past(None);
    assert!(keep(&mut keeper, &path, &[]).is_err(), "nothing has happened yet");
    for _ in 0..40 {
        keeper.tick(VIEW).unwrap();
    }
    assert_eq!(keep(&mut keeper, &path, &[7, 39]).unwrap(), 40);
    let (intervals, said) = replayed(&path);
    let expected: Vec<_> = (1..=40).map(|n| (n, if n == 1 { 1 } else { 2 })).collect();
    assert_eq!(intervals, expected);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|s| s.contains("marked in cachetop")), "{said:?}");
    // Again, with the next interval: the recording takes the place of the one before. Anything else is left alone.
    assert_eq!(keep(&mut keeper, &path, &[]).unwrap(), 40);
    let other = dir.path().join("letter");
    std::fs::write(&other, "dear").unwrap();
    assert!(keep(&mut keeper, &other, &[]).is_err());
    assert_eq!(std::fs::read(&other).unwrap(), b"dear");
    assert!(keep(&mut keeper, &dir.path().join("no/where"), &[]).is_err());
}

#[test]
fn a_mark_is_seen_on_the_axis_and_names_the_file_by_its_time() {
    let mut app = app((80, 24));
    assert!(typed(&mut app, "M").is_empty(), "nothing is shown yet");
    for number in 1..=6 {
        app.take(Snapshot { number, ..snapshot(Vec::new(), fixtures::busy().total) });
    }
    let effects = typed(&mut app, "M");
    let Some(Effect::Keep(name, marks)) = effects.last() else { panic!("{effects:?}") };
    assert!(name.starts_with("cachetop-2") && name.ends_with(".record") && !name.contains('/'), "{name}");
    assert_eq!(*marks, [6]);
    assert!(frame(&mut app).contains('◆'), "{}", frame(&mut app));
    let plain = Theme { unicode: false, ..Theme::plain() };
    assert!(frame_as(&mut app, &plain).contains("--*now"), "{}", frame_as(&mut app, &plain));
    // Marked twice it is one mark.
    assert_eq!(typed(&mut app, "M"), effects);
    // What comes later is to the right of it, also where the mark stands in the place of a letter.
    for (number, axis) in [(7, "--*-now"), (8, "--*--now"), (9, "--*now")] {
        app.take(Snapshot { number, ..snapshot(Vec::new(), fixtures::busy().total) });
        assert!(frame_as(&mut app, &plain).contains(axis), "{axis}: {}", frame_as(&mut app, &plain));
    }
    app.scene.replay = Some(crate::top::scene::Replayed { recorded: Duration::ZERO, kept: Duration::ZERO });
    assert!(typed(&mut app, "M").is_empty());
}

#[test]
fn why_a_moment_was_not_kept_is_seen_and_it_has_no_mark() {
    let mut app = app((80, 24));
    app.take(Snapshot { number: 1, ..snapshot(Vec::new(), fixtures::busy().total) });
    typed(&mut app, "M");
    app.take(Snapshot { number: 2, ..snapshot(Vec::new(), fixtures::busy().total) });
    typed(&mut app, "M");
    let path = Path::new("/srv/a/directory/with/a/long/name/and/more/below/cachetop-20261130T173349.record");
    for why in
        ["No space left on device", &format!("cannot write {}: No space left on device", path.display())]
    {
        app.not_kept(Some(2), crate::top::sampler::not_kept(why, path));
        assert_eq!(app.marks, [1]);
        assert!(frame(&mut app).contains("not kept: No space left on device: /srv"), "{}", frame(&mut app));
    }
}

#[test]
fn a_jump_goes_by_the_time_that_intervals_took() {
    let mut app = app((80, 24));
    let of = |number: u64, seconds: f64| {
        let mut out = Snapshot { number, ..snapshot(Vec::new(), fixtures::busy().total) };
        out.system.seconds = seconds;
        out
    };
    // 50 seconds of intervals of a tenth, then three of five seconds.
    for number in 1..=500 {
        app.take(of(number, 0.1));
    }
    for number in 501..=503 {
        app.take(of(number, 5.0));
    }
    app.settings.interval = Duration::from_secs(5);
    assert_eq!(typed(&mut app, "{"), [Effect::Back(Some(50))], "15 seconds and 450 intervals");
    app.take(Snapshot { fresh: false, ..of(50, 0.1) });
    assert_eq!(typed(&mut app, "}"), [Effect::Back(Some(503))]);
    // What comes behind the last one is now.
    app.take(Snapshot { fresh: false, ..of(453, 0.1) });
    assert_eq!(typed(&mut app, "}"), [Effect::Back(None)]);
}

#[test]
fn a_row_has_a_course_of_what_is_kept() {
    let mut source = Made(samples(12).into(), fixtures::plan(&[]));
    let keeper = Keeper::new(&mut source, pivot(), true, Box::new(|_| true)).unwrap();
    let mut keeper = keeper.with_past(None);
    for _ in 0..10 {
        keeper.tick(VIEW).unwrap();
    }
    let who = process(1, "reader", &[]).who;
    let row = (By::Process, &Id::Number(1), &who);
    let course = keeper.course(None, row).unwrap();
    let hits = |course: &crate::top::course::Course| -> Vec<u64> {
        course.bars.iter().map(|b| b.values.unwrap()[2]).collect()
    };
    assert_eq!(hits(&course), (1..=10_u64).map(|n| n.div_ceil(2)).collect::<Vec<_>>());
    assert!(course.bars.iter().all(|b| !b.cut && (b.seconds - 1.0).abs() < 1e-6));
    // What comes later is added; another row begins anew.
    keeper.tick(VIEW).unwrap();
    let course = keeper.course(Some(course), row).unwrap();
    assert_eq!((course.bars.len(), hits(&course)[10]), (11, 6));
    let who = process(9, "none", &[]).who;
    let other = keeper.course(Some(course), (By::Process, &Id::Number(9), &who)).unwrap();
    assert_eq!(hits(&other), vec![0; 11], "it did nothing, and all rows were kept");
}
