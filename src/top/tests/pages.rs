//! What the cache has now of a file and of a cgroup, and what a row did in the last minutes.

use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::cgroup::Memory;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::sample::Counter;
use crate::top::app::Mode;
use crate::top::links::WhatIf;
use crate::top::now::Now;
use crate::top::now::Pages;
use crate::whatif::Prediction;

const SIZES: [(u16, u16); 5] = [(80, 24), (120, 40), (200, 60), (60, 15), (40, 12)];

/// The details of a row of this kind are open.
fn opened(size: (u16, u16), by: By, who: Who) -> App {
    let mut app = app(size);
    app.settings.by = by;
    let mut all = snapshot(Vec::new(), fixtures::busy().total);
    all.view.by = by;
    let row = Row { who, figures: fixtures::figures(&reads(9, 0, 1)), classic: None, back: None };
    all.entries = Arc::new(vec![Entry::new(by, row, State::Active)]);
    app.take(all);
    typed(&mut app, "~");
    app
}

fn tell(app: &mut App, now: Now) {
    let (by, id) = app.open.as_ref().map(|o| (o.by, o.id.clone())).unwrap();
    assert!(app.looked_at(by, &id, now));
    let who = app.open.as_ref().unwrap().who.clone();
    app.looked_up(crate::top::details::Details {
        by,
        id,
        who,
        since_start: None,
        lists: Vec::new(),
        latency: None,
        system_latency: None,
        findings: Vec::new(),
        files_counted: true,
        course: None,
        begun: None,
    });
}

fn file() -> Who {
    Who { path: Some("/srv/\u{1b}[2Jtable".into()), inode: Some(7), ..Who::default() }
}

#[test]
fn a_file_has_a_map_of_what_is_cached_now() {
    for size in SIZES {
        let mut app = opened(size, By::File, file());
        let parts = (0..192).map(|i| [100, 60, 10, 0][i % 4]).collect();
        let pages = Pages {
            size: 19_200 * 4096,
            pages: 19_200,
            cached: 8160,
            dirty: Some(12),
            evicted: None,
            runs: 96,
            part: 100,
            parts,
        };
        tell(&mut app, Now::File(Ok(pages)));
        insta::assert_snapshot!(format!("map_{}x{}", size.0, size.1), frame(&mut app));
    }
    let mut app = opened((100, 40), By::File, file());
    tell(&mut app, Now::File(Err("no\u{1b}[2J answer".into())));
    assert!(frame(&mut app).contains("- (no\\x1b[2J answer)"), "{}", frame(&mut app));
    // A file without a page.
    let none = Pages {
        size: 0,
        pages: 0,
        cached: 0,
        dirty: None,
        evicted: None,
        runs: 0,
        part: 1,
        parts: Vec::new(),
    };
    tell(&mut app, Now::File(Ok(none)));
    assert!(frame(&mut app).contains("0 of 0 (-)"), "{}", frame(&mut app));
    // An answer for what is not open any more.
    assert!(!app.looked_at(By::File, &Id::Other, Now::File(Err(String::new()))));
}

#[test]
fn a_cgroup_has_its_memory() {
    let who = Who { cgroup: Some("/system.slice/db.service".into()), ..Who::default() };
    let at = Instant::now();
    let memory = |refaulted| Memory {
        file: Some(300 << 20),
        active: Some(100 << 20),
        inactive: Some(200 << 20),
        dirty: Some(4096),
        used: Some(500 << 20),
        limit: Some((512 << 20, "/system.slice".into())),
        refaulted: Some(refaulted),
        stalled: Some(5),
        pressure: Some((0.125, 0.0)),
    };
    for size in SIZES {
        let mut app = opened(size, By::Cgroup, who.clone());
        tell(&mut app, Now::Cgroup(Ok((memory(1000), at))));
        tell(&mut app, Now::Cgroup(Ok((memory(1500), at + Duration::from_secs(2)))));
        insta::assert_snapshot!(format!("memory_{}x{}", size.0, size.1), frame(&mut app));
    }
    // What a kernel does not say is not known.
    let mut app = opened((100, 40), By::Cgroup, who);
    tell(&mut app, Now::Cgroup(Ok((Memory::default(), at))));
    let text = frame(&mut app);
    assert!(text.contains("files         - active -") && text.contains("no limit"), "{text}");
    tell(&mut app, Now::Cgroup(Err("it is gone".into())));
    assert!(frame(&mut app).contains("- (it is gone)"));
}

/// Twenty intervals of a process, one of them without it.
fn course(who: &Who) -> Option<crate::top::course::Course> {
    let start = crate::sample::Moment::now();
    let made = |n: u64| {
        let mut out = fixtures::sample(start, Duration::from_secs(n), &[]);
        let counts = [
            (Counter::ReadHits, n * 977 % 4000),
            (Counter::ReadAheadHits, n * 331 % 900),
            (Counter::ReadMisses, n * 57 % 300),
        ];
        if n > 0 && n != 13 {
            out.rows.push(fixtures::process(7, "postgres", &counts));
        }
        out
    };
    let mut source = fixtures::Made((0..=20).map(made).collect(), fixtures::plan(&[]));
    let names = Box::<fixtures::FakeNames>::default();
    let pivot = Pivot { by: None, top: usize::MAX, filter: Filter::default(), names };
    let keeper = Keeper::new(&mut source, pivot, true, Box::new(|_| true)).unwrap();
    let mut keeper = keeper.with_past(None);
    for _ in 0..20 {
        keeper.tick(VIEW).unwrap();
    }
    keeper.course(None, (By::Process, &Id::Number(7), who))
}

#[test]
fn a_process_has_findings_its_course_what_it_reads_and_what_to_run_next() {
    let who = process(7, "postgres", &[]).who;
    let course = course(&who);
    assert!(course.is_some());
    for size in SIZES {
        let mut app = opened(size, By::Process, who.clone());
        let figures = fixtures::figures(&reads(16, 24_354, 514));
        let file = |path: &str, misses| Row {
            who: Who { path: Some(path.into()), inode: Some(misses), ..Who::default() },
            figures: fixtures::figures(&reads(8, 12_177, misses)),
            classic: None,
            back: None,
        };
        let files = vec![file("/srv/data/base/16384/2619", 500), file("/srv/\u{202e}gnp", 14)];
        let thread = Row {
            who: Who { tid: Some(9), ..who.clone() },
            figures: figures.clone(),
            classic: None,
            back: None,
        };
        app.looked_up(crate::top::details::Details {
            by: By::Process,
            id: Id::Number(7),
            who: who.clone(),
            findings: crate::top::findings::find(&figures, 4096),
            since_start: Some(Row { who: who.clone(), figures, classic: None, back: None }),
            lists: [(By::File, files), (By::Thread, vec![thread])].map(list).to_vec(),
            latency: None,
            system_latency: None,
            files_counted: true,
            course: course.clone(),
            begun: None,
        });
        app.command_line(7, Some("postgres: checkpointer \u{1b}[2J".into()));
        insta::assert_snapshot!(format!("process_{}x{}", size.0, size.1), frame(&mut app));
        // To what it ends with, and up to the first command.
        app.input(&key(KeyCode::End));
        app.input(&key(KeyCode::Up));
        insta::assert_snapshot!(format!("process_end_{}x{}", size.0, size.1), frame(&mut app));
    }
}

/// A key asks; what was told stays on the page until another key, or the end of the page.
#[test]
fn a_cgroup_is_asked_what_if() {
    let who = Who { cgroup: Some("/system.slice/db.service".into()), ..Who::default() };
    let id = |app: &App| app.open.as_ref().unwrap().id.clone();
    let scaled = |scale: f64, miss_ratio: Option<f64>| crate::whatif::Scaled {
        scale,
        size_bytes: Some((scale * f64::from(1 << 28)) as u64),
        miss_ratio,
        error: miss_ratio.map(|_| 0.02),
        device_bytes_per_s: miss_ratio.map(|n| n * 1e8),
        waiting: None,
    };
    let told = Prediction {
        seconds: 42.3,
        accesses: Some(1_234_567),
        now: crate::whatif::Now { size_bytes: Some(1 << 28), miss_ratio: Some(0.25) },
        curve: Some(vec![
            scaled(0.5, Some(0.43)),
            scaled(0.75, Some(0.33)),
            scaled(1.0, Some(0.25)),
            scaled(1.25, Some(0.18)),
            scaled(1.5, Some(0.11)),
            scaled(2.0, Some(0.02)),
            scaled(4.0, None),
        ]),
        notes: vec!["17 uses of pages were not seen for want of room\u{1b}[2J".into()],
        ..Prediction::default()
    };
    for size in SIZES {
        let mut app = opened(size, By::Cgroup, who.clone());
        tell(&mut app, Now::Cgroup(Err("gone".into())));
        typed(&mut app, "w");
        let asked = id(&app);
        assert!(app.predicted(&asked, WhatIf::Told(Box::new(told.clone()))));
        insta::assert_snapshot!(format!("what_if_{}x{}", size.0, size.1), frame(&mut app));
    }
    // On a small screen it comes into sight, also where what stands above it grows meanwhile; not for who has gone on.
    for size in [(80, 24), (40, 10)] {
        let mut app = opened(size, By::Cgroup, who.clone());
        typed(&mut app, "w");
        tell(&mut app, Now::Cgroup(Err("gone".into())));
        let asked = id(&app);
        assert!(app.predicted(&asked, WhatIf::Starting));
        assert!(frame(&mut app).contains("begins to watch"), "{size:?}: {}", frame(&mut app));
        tell(&mut app, Now::Cgroup(Err("a reason that takes some lines ".repeat(8))));
        assert!(app.predicted(&asked, WhatIf::Told(Box::new(told.clone()))));
        assert!(frame(&mut app).contains("x0.75"), "{size:?}: {}", frame(&mut app));
        app.input(&key(KeyCode::Home));
        assert!(app.predicted(&asked, WhatIf::Told(Box::new(told.clone()))));
        assert_eq!(frame(&mut app).contains("x0.75"), size.1 == 24, "{size:?}: {}", frame(&mut app));
    }
    let mut app = opened((100, 40), By::Cgroup, who);
    tell(&mut app, Now::Cgroup(Err("gone".into())));
    assert!(frame(&mut app).contains("w: watch it") && app.predicts().is_none());
    typed(&mut app, "w");
    assert!(frame(&mut app).contains("begins to watch") && app.predicts().is_some());
    let asked = id(&app);
    let reason = Some("not enough seen yet: 3 accesses".into());
    let little = Prediction { seconds: 6.0, curve: None, reason, ..told };
    assert!(app.predicted(&asked, WhatIf::Told(Box::new(little))));
    let text = frame(&mut app);
    assert!(text.contains("not enough seen yet: 3 accesses; watched for 6 s"), "{text}");
    assert!(app.predicted(&asked, WhatIf::Failed("no\u{1b}[2J".into())));
    assert!(frame(&mut app).contains("- (no\\x1b[2J)"));
    // Not any more, and what comes late is nobody's.
    typed(&mut app, "w");
    assert!(app.predicts().is_none() && !app.predicted(&asked, WhatIf::Starting));
    typed(&mut app, "w");
    assert!(app.predicts().is_some());
    typed(&mut app, "q");
    let mut app = opened((100, 40), By::File, file());
    typed(&mut app, "w");
    assert!(app.predicts().is_none() && app.message.is_none());
}

#[test]
fn a_page_that_became_shorter_shows_its_end() {
    let mut app = opened((80, 24), By::File, file());
    tell(&mut app, Now::File(Err("not asked".into())));
    app.mode = Mode::Details(crate::top::draw::last_line(&app));
    let end = frame(&mut app);
    app.mode = Mode::Details(500);
    assert_eq!(frame(&mut app), end);
}
