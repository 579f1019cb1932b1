//! Processes that have ended: they stand together, or behind all that live, and rows go on to add up.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::live::keeper::Keeper;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Sample;
use crate::sample::Source;
use crate::top::app::App;

/// Each second ten processes that stay, and a hundred that live for a moment and do more than these, each of them in an
/// interval of the length that is set.
struct Storm {
    plan: Plan,
    start: crate::sample::Moment,
    at: Duration,
    k: u32,
    length: Rc<Cell<u64>>,
    total: u64,
}

const EACH: u32 = 100;
const STAY: u32 = 10;
const FIRST: u32 = 1000;

impl Source for Storm {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut out = fixtures::sample(self.start, self.at, &[]);
        if self.k > 0 {
            let stays = (0..STAY).map(|i| (10 + i, "daemon", 5 + u64::from(i)));
            let short = (0..EACH).map(|i| (FIRST + self.k * EACH + i, ["sh", "cat"][i as usize % 2], 20));
            for (pid, comm, hits) in stays.chain(short) {
                out.rows.push(fixtures::process(pid, comm, &[(Counter::ReadHits, hits)]));
                self.total += hits;
            }
        }
        out.total.0[Counter::ReadHits as usize] = self.total;
        self.k += 1;
        self.at += Duration::from_secs(self.length.get());
        Ok(out)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

fn storm(length: &Rc<Cell<u64>>) -> Storm {
    let start = crate::sample::Moment::now();
    Storm { plan: fixtures::plan(&[]), start, at: Duration::ZERO, k: 0, length: length.clone(), total: 0 }
}

fn pivot() -> Pivot {
    Pivot {
        by: None,
        top: usize::MAX,
        filter: Filter::default(),
        names: Box::<fixtures::FakeNames>::default(),
    }
}

fn keeper(source: &mut Storm) -> Keeper<'_> {
    Keeper::new(source, pivot(), true, Box::new(|pid| pid < FIRST)).unwrap()
}

/// The names of the first rows, with what stands before them.
fn first(app: &App, n: usize) -> Vec<String> {
    let slots = app.slots.iter().take(n);
    slots
        .map(|s| {
            let (entry, (row, _)) = (app.entry(*s).unwrap(), app.row(*s).unwrap());
            let hits = row.figures.get(Figure::Hits).unwrap();
            let comm = row.who.comm.map_or("(other)".into(), |c| c.to_string());
            format!("{} {comm} {hits}", entry.ended.map_or("-".into(), |n| n.to_string()))
        })
        .collect()
}

fn sum(snapshot: &Snapshot, figure: Figure) -> u64 {
    let counts = snapshot.entries.iter().filter(|e| e.state.counts());
    counts.map(|e| snapshot.row(e).figures.get(figure).unwrap()).sum()
}

#[test]
fn under_a_storm_the_first_rows_are_alive_or_stand_for_many() {
    let mut source = storm(&Rc::new(Cell::new(1)));
    let mut keeper = keeper(&mut source);
    let mut app = app((120, 40));
    for _ in 0..20 {
        let snapshot = keeper.tick(app.view()).unwrap();
        assert_eq!(sum(&snapshot, Figure::Hits), snapshot.system.total.get(Figure::Hits).unwrap());
        app.take(snapshot);
        let rows = first(&app, 20);
        assert_eq!(rows.len(), 12, "{rows:?}");
        assert_eq!(rows[..3], ["50 cat 1000", "50 sh 1000", "- daemon 14"]);
    }
    let text = frame(&mut app);
    assert!(text.contains("10 processes  100 ended"), "{text}");
    assert!(text.contains("50x sh"), "{text}");
    // By what they were counted for.
    typed(&mut app, "e");
    app.take(keeper.again(app.view()));
    assert_eq!(first(&app, 1), ["100 /user.slice 2000"]);
    // Nobody said whose children they were.
    typed(&mut app, "e");
    app.take(keeper.again(app.view()));
    assert_eq!(first(&app, 1), ["100 (parents ended) 2000"]);
    // Each by itself: all that live come first, whichever way rows are sorted.
    typed(&mut app, "e");
    for reverse in [false, true] {
        app.settings.reverse = reverse;
        app.take(keeper.again(app.view()));
        assert!(first(&app, 10).iter().all(|r| r.contains("daemon")), "{:?}", first(&app, 10));
        let snapshot = app.snapshot.as_ref().unwrap();
        assert_eq!(sum(snapshot, Figure::Hits), snapshot.system.total.get(Figure::Hits).unwrap());
    }
    // Threads as well.
    app.settings.by = By::Thread;
    app.settings.ended = Ended::Command;
    app.settings.reverse = false;
    app.take(keeper.again(app.view()));
    assert_eq!(first(&app, 3), ["50 cat 1000", "50 sh 1000", "- daemon 14"]);
}

#[test]
fn since_the_start_they_add_up_and_never_fall() {
    let mut source = storm(&Rc::new(Cell::new(1)));
    let mut keeper = keeper(&mut source);
    let view = View { show: Show::Total, ended: Ended::Command, ..VIEW };
    for k in 1..30 {
        let snapshot = keeper.tick(view).unwrap();
        let total = u64::from(EACH) * 20 * k + (5..15).sum::<u64>() * k;
        assert_eq!(sum(&snapshot, Figure::Hits), total);
        assert!(keeper.kept()[0] < 1100, "most of them were put away");
        for comm in ["sh", "cat"] {
            let entry = snapshot.entries.iter().find(|e| *e.id() == Id::Text(comm.into())).unwrap();
            let hits = snapshot.row(entry).figures.get(Figure::Hits).unwrap();
            assert_eq!(hits, total_of_one(k), "{comm} of {k}: what was put away is in it");
        }
    }
    // How many were put away is not known: that is not one.
    let mut app = app((120, 40));
    app.settings.show = Show::Total;
    app.take(keeper.again(view));
    let text = frame(&mut app);
    assert!(text.contains(" many x sh") && text.contains("10 processes  since start"), "{text}");
}

fn total_of_one(k: u64) -> u64 {
    u64::from(EACH) / 2 * 20 * k
}

#[test]
fn figures_of_an_interval_of_another_length_are_comparable() {
    let length = Rc::new(Cell::new(10));
    let mut source = storm(&length);
    let mut keeper = keeper(&mut source);
    let mut app = app((120, 40));
    app.settings.ended = Ended::Apart;
    app.take(keeper.tick(app.view()).unwrap());
    length.set(1);
    for _ in 0..2 {
        app.take(keeper.tick(app.view()).unwrap());
    }
    let of_ten = app.slots.iter().find(|s| app.entry(**s).unwrap().seconds == Some(10.0)).copied().unwrap();
    let (row, state) = app.row(of_ten).unwrap();
    assert_eq!((row.figures.get(Figure::Hits), state), (Some(20), State::Gone));
    let cell = |show| {
        let numbers = crate::top::numbers::Numbers { show, ..app.numbers() };
        let numbers = numbers.over(app.entry(of_ten).unwrap().seconds);
        let hits = crate::top::cells::find("hits").unwrap();
        numbers.cell(hits, &crate::columns::Line::from(&row))
    };
    assert_eq!((cell(Show::Count), cell(Show::Rate)), ("2".into(), "2".into()));
}

#[test]
fn the_row_that_is_watched_stays_though_its_process_has_ended() {
    let mut source = storm(&Rc::new(Cell::new(1)));
    let mut keeper = keeper(&mut source);
    let view = View { ended: Ended::Command, ..VIEW };
    let one = Id::Number(u64::from(FIRST + EACH + 7));
    keeper.watch(Some(one.clone()));
    for k in 0..6 {
        let snapshot = keeper.tick(view).unwrap();
        let entry = snapshot.entries.iter().find(|e| *e.id() == one).unwrap();
        assert_eq!(entry.state, if k == 0 { State::Ended } else { State::Gone });
        assert_eq!(sum(&snapshot, Figure::Hits), snapshot.system.total.get(Figure::Hits).unwrap());
    }
    keeper.watch(None);
    assert!(!keeper.tick(view).unwrap().entries.iter().any(|e| *e.id() == one));
}

#[test]
fn totals_stand_still_with_the_picture() {
    let mut source = storm(&Rc::new(Cell::new(1)));
    let mut keeper = keeper(&mut source);
    let view = View { show: Show::Total, ended: Ended::Command, ..VIEW };
    keeper.tick(view).unwrap();
    keeper.hold(true);
    let before = sum(&keeper.again(view), Figure::Hits);
    assert!(keeper.tick(view).unwrap().held);
    assert_eq!(sum(&keeper.again(view), Figure::Hits), before);
    let by_command = keeper.again(View { by: By::Comm, ..view });
    assert_eq!(sum(&by_command, Figure::Hits), before, "in another kind of rows as well");
    keeper.hold(false);
    assert_eq!(sum(&keeper.again(view), Figure::Hits), 2 * before);
}

#[test]
fn every_interval_of_the_past_can_be_seen_again_in_any_kind_of_rows() {
    let mut source = storm(&Rc::new(Cell::new(1)));
    let mut keeper = keeper(&mut source).with_past(None);
    let mut app = app((120, 40));
    for _ in 0..30 {
        app.take(keeper.tick(app.view()).unwrap());
    }
    let then = first(&app, 12);
    let key_of = |app: &mut App, code| app.input(&key(code));
    assert_eq!(key_of(&mut app, KeyCode::Left), [Effect::Back(Some(29))]);
    for (by, ended) in [(By::Process, Ended::Command), (By::Comm, Ended::Command), (By::Thread, Ended::Apart)]
    {
        app.settings.by = by;
        app.settings.ended = ended;
        keeper.look_back(Some(12));
        let snapshot = keeper.again(app.view());
        assert_eq!((snapshot.number, snapshot.oldest), (12, 1));
        assert_eq!(sum(&snapshot, Figure::Hits), snapshot.system.total.get(Figure::Hits).unwrap());
        app.take(snapshot);
        assert_eq!(app.back, Some(12));
        match by {
            By::Process => assert_eq!(first(&app, 12), then, "each interval is like the others"),
            By::Comm => assert_eq!(first(&app, 2), ["- cat 1000", "- sh 1000"]),
            _ => assert!(first(&app, 10).iter().all(|r| r.contains("daemon"))),
        }
    }
    // Counting goes on, the picture does not.
    assert!(!app.take(keeper.tick(app.view()).unwrap()));
    assert!((app.ago() - 19.0).abs() < 0.01, "{}", app.ago());
    let text = frame(&mut app);
    assert!(text.contains("19 s AGO") && text.contains('▲'), "{text}");
    // Totals of then were not kept: the interval is shown, and called so.
    app.settings.show = Show::Total;
    assert_eq!(keeper.again(app.view()).view.show, Show::Count);
    app.settings.show = Show::Count;
    // To the beginning, and no further.
    assert_eq!(
        app.input(&Event::Key(KeyEvent::new(KeyCode::Left, KeyModifiers::CONTROL))),
        [Effect::Back(Some(2))]
    );
    keeper.look_back(Some(1));
    app.take(keeper.again(app.view()));
    assert_eq!(key_of(&mut app, KeyCode::Left), []);
    // And back to now.
    assert_eq!((typed(&mut app, "p"), app.paused, app.back), (vec![Effect::Back(None)], false, None));
    keeper.look_back(None);
    assert_eq!(keeper.again(app.view()).number, 31);
}

#[test]
fn of_the_past_it_says_that_there_were_more_rows() {
    let start = crate::sample::Moment::now();
    let sample = |k: u64| {
        let mut out = fixtures::sample(start, Duration::from_secs(k), &[(Counter::ReadHits, 804 * k)]);
        let row = |pid| fixtures::process(pid, "daemon", &[(Counter::ReadHits, 1)]);
        out.rows = (1..=if k > 0 { 804 } else { 0 }).map(row).collect();
        out
    };
    let mut source = fixtures::Made((0..3).map(sample).collect(), fixtures::plan(&[]));
    let keeper = Keeper::new(&mut source, pivot(), true, Box::new(|pid| pid > 10)).unwrap();
    let mut keeper = keeper.with_past(None);
    let mut app = app((120, 40));
    for _ in 0..2 {
        app.take(keeper.tick(app.view()).unwrap());
    }
    assert!(frame(&mut app).contains("794 processes  10 ended"), "{}", frame(&mut app));
    app.input(&key(KeyCode::Left));
    keeper.look_back(Some(1));
    app.take(keeper.again(app.view()));
    assert!(frame(&mut app).contains("502+ processes  10+ ended"), "{}", frame(&mut app));
    // Files were none.
    assert!(!keeper.again(View { by: By::File, ..app.view() }).cut);
}

#[test]
fn what_is_written_down_has_the_rows_of_its_interval_and_no_others() {
    use crate::top::batch;
    use crate::top::options::Options;
    use crate::top::options::Output;
    for output in [Output::Text, Output::Json] {
        let mut source = storm(&Rc::new(Cell::new(1)));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let world = batch::World {
            source: &mut source,
            pivot: pivot(),
            wait: &mut fixtures::Beats(5),
            out: &mut out,
            err: &mut err,
        };
        let options = Options { output, ..Options::default() };
        batch::run(&options, &Settings::for_engine(Engine::Exact), &scene(), world).unwrap();
        let out = String::from_utf8(out).unwrap();
        let intervals: Vec<_> = match output {
            Output::Json => out.lines().collect(),
            _ => out.split("\n\n").filter(|part| part.contains(" daemon")).collect(),
        };
        assert_eq!(intervals.len(), 5, "{out}");
        for (k, text) in (1..).zip(intervals) {
            let ids: Vec<u32> = match output {
                Output::Json => {
                    let all: serde_json::Value = serde_json::from_str(text).unwrap();
                    let id = |row: &serde_json::Value| row["pid"].as_u64().unwrap() as u32;
                    all["rows"].as_array().unwrap().iter().map(id).collect()
                }
                _ => text.lines().filter_map(|l| l.split_whitespace().next()?.parse().ok()).collect(),
            };
            let short: Vec<_> = ids.iter().filter(|pid| **pid >= FIRST).collect();
            let own = |pid: &&u32| (**pid - FIRST) / EACH == k;
            assert_eq!((ids.len(), short.len()), ((EACH + STAY) as usize, EACH as usize), "{text}");
            assert!(short.iter().all(own), "interval {k}: {text}");
        }
    }
}

/// A shell that becomes another program has a row under each name: it is one process all the same. What ended before, and
/// lingers, is not of this interval.
#[test]
fn each_that_has_ended_is_counted_once_however_it_is_shown() {
    const NUMBERS: [u32; 4] = [0, 7, 3, 2];
    let start = crate::sample::Moment::now();
    let mut total = 0;
    let mut sample = |k: usize| {
        let mut out = fixtures::sample(start, Duration::from_secs(k as u64), &[]);
        let hit = [(Counter::ReadHits, 1)];
        let names = [["", ""], ["bash", "true"], ["dash", "false"], ["sh", "cat"]];
        for (i, comm) in (0..NUMBERS[k]).flat_map(|i| names[k].map(|comm| (i, comm))) {
            out.rows.push(fixtures::process(FIRST + 100 * k as u32 + i, comm, &hit));
        }
        if k > 0 {
            out.rows.push(fixtures::process(10, "daemon", &hit));
            // This one did nothing that a row shows.
            out.rows.push(fixtures::process(FIRST + 100 * k as u32 + 99, "idle", &[]));
        }
        total += out.rows.len() as u64 - u64::from(k > 0);
        out.total.0[Counter::ReadHits as usize] = total;
        out
    };
    let mut source = fixtures::Made((0..4).map(&mut sample).collect(), fixtures::plan(&[]));
    let keeper = Keeper::new(&mut source, pivot(), true, Box::new(|pid| pid < FIRST)).unwrap();
    let mut keeper = keeper.with_past(None);
    const FOLDS: [Ended; 4] = [Ended::Command, Ended::Cgroup, Ended::Parent, Ended::Apart];
    for (n, ended) in [(7, Ended::Command), (3, Ended::Command), (2, Ended::Apart)] {
        let mut app = app((120, 40));
        app.take(keeper.tick(View { ended, ..VIEW }).unwrap());
        let text = frame(&mut app);
        assert!(text.contains(&format!("1 process  {n} ended")), "{text}");
        for ended in FOLDS {
            assert_eq!(keeper.again(View { ended, ..VIEW }).ended, Some(n), "{ended:?}");
        }
        keeper.again(View { ended, ..VIEW });
    }
    for ended in FOLDS {
        let snapshot = keeper.again(View { ended, show: Show::Total, ..VIEW });
        assert_eq!((snapshot.ended, snapshot.rows()), (Some(12), 1), "{ended:?}");
    }
    assert_eq!(keeper.again(View { by: By::Comm, ended: Ended::Command, ..VIEW }).ended, Some(0));
    assert_eq!(keeper.again(VIEW).ended, Some(0), "nobody asks");
    keeper.look_back(Some(1));
    assert_eq!(keeper.again(View { ended: Ended::Command, ..VIEW }).ended, Some(7));
}
