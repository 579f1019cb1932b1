//! A recording as text and on the screen. The n-th interval has n hits, so that it is known which one is shown.

mod cost;

use std::path::Path;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::exit::Code;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::record::live::Noting;
use crate::record::live::Recording;
use crate::record::names::Told;
use crate::record::replay::Opened;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::replay::When;
use crate::record::writer::Writer;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::sample::Source as _;
use crate::top::batch;
use crate::top::batch::World;
use crate::top::options::Changes;
use crate::top::options::Config;
use crate::top::options::Options;
use crate::top::options::Output;
use crate::top::replay::Tape;
use crate::top::sampler::Command;
use crate::top::sampler::Report;
use crate::view::fixtures::Beats;
use crate::view::fixtures::Made;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// What a terminal would act upon.
const HOSTILE: &str = "\u{1b}[2Jx\u{7}\n\u{202e}";

/// So many intervals of a second, each with so many processes; `pause`: seconds that the 20th takes longer.
fn samples(intervals: u64, processes: u32, pause: u64) -> Vec<Sample> {
    let start = Moment::now();
    let made = |n: u64| {
        let after = Duration::from_secs(n + if n < 20 { 0 } else { pause });
        let mut sample = fixtures::sample(start, after, &[(Counter::ReadHits, n * (n + 1) / 2)]);
        let first = u64::from(n > 0) * n.saturating_sub(u64::from(processes) - 1);
        let row = |pid: u32| {
            let hits = if pid == 1 { first } else { 1 };
            let comm = if pid % 3 == 0 { HOSTILE } else { "reader" };
            fixtures::process(pid, comm, &[(Counter::ReadHits, hits)])
        };
        if n > 0 {
            sample.rows = (1..=processes).map(row).collect();
        }
        sample
    };
    (0..=intervals).map(made).collect()
}

fn world_pivot(names: Told) -> Pivot {
    Pivot { by: None, top: usize::MAX, filter: Filter::default(), names: Box::new(names) }
}

fn options(output: Output, path: &Path) -> Options {
    let replay = Some((path.to_path_buf(), None));
    Options { output, replay, config: Config::Nowhere, ..Options::default() }
}

/// What is shown live, while it is recorded.
fn record(path: &Path, options: &Options, made: Vec<Sample>) -> String {
    let mut writer = Writer::file(path, Duration::from_secs(1)).unwrap();
    let mut beats = Beats(made.len() - 1);
    let mut source = Made(made.into(), fixtures::plan(&[]));
    let (told, sink) = Told::new();
    let mut names = fixtures::FakeNames::default();
    let (mut source, wake) = Recording::new(&mut source, &mut names, &mut writer, sink);
    let mut wait = Noting { wait: &mut beats, wake };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let world = World {
        source: &mut source,
        pivot: world_pivot(told),
        wait: &mut wait,
        out: &mut out,
        err: &mut err,
    };
    let mut settings = Settings::for_engine(Engine::Exact);
    options.changes.apply(&mut settings);
    batch::run(options, &settings, &scene(), world).unwrap();
    String::from_utf8(out).unwrap()
}

/// What the replay writes.
fn replayed(options: &Options) -> String {
    let mut out = Vec::new();
    crate::top::replay::batch(options, None, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn as_text_and_json_it_is_what_was_shown_live() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for by in [By::Process, By::Comm, By::User, By::Cgroup, By::File] {
        let changes = Changes { by: Some(by), ..Changes::default() };
        for output in [Output::Json, Output::Text] {
            let options = Options { changes: changes.clone(), top: Some(5), ..options(output, &path) };
            let (live, there) = (record(&path, &options, samples(40, 9, 100)), replayed(&options));
            // The first line of each interval says what it is of, and whether it is now.
            let plain = |text: &str| -> Vec<String> {
                text.lines().filter(|l| !l.starts_with("cachetop ")).map(String::from).collect()
            };
            assert!(plain(&live).len() >= 40, "{live}");
            assert_eq!(plain(&live), plain(&there), "{by:?} {output:?}");
            assert!(!there.contains(['\u{1b}', '\u{7}', '\u{202e}']));
        }
    }
}

#[test]
fn ten_thousand_rows_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let options = options(Output::Json, &path);
    let live = record(&path, &options, samples(3, 10_000, 0));
    let there = replayed(&options);
    assert_eq!(live, there);
    let last: serde_json::Value = serde_json::from_str(there.lines().last().unwrap()).unwrap();
    // All but the one that did nothing.
    assert_eq!(last["rows"].as_array().unwrap().len(), 9999);
}

/// The thread that reads a recording, and what it has said.
struct Walk {
    commands: Sender<Command>,
    reports: Receiver<Report>,
    app: App,
    said: Vec<String>,
}

impl Walk {
    fn new(path: &Path, from: Option<&str>) -> Self {
        let (commands, asked) = mpsc::channel();
        let (reporter, reports) = mpsc::channel();
        let (begins, began) = mpsc::channel();
        let path = path.to_path_buf();
        let from = from.map(|text| When::parse(text).unwrap());
        thread::spawn(move || {
            let options = options(Output::Screen, &path);
            let (tape, scene, settings) = Tape::open(&options, (&path, from.as_ref()), None).unwrap();
            begins.send((scene, settings)).unwrap();
            tape.work(VIEW, &asked, &|r| reporter.send(r).is_ok()).unwrap();
        });
        let (scene, settings) = began.recv_timeout(Duration::from_secs(60)).unwrap();
        let zone = jiff::tz::TimeZone::UTC;
        let app = App::new(Scene { zone, ..scene }, settings, (120, 40));
        let mut walk = Self { commands, reports, app, said: Vec::new() };
        walk.hear();
        walk
    }

    /// Takes what comes until there is a picture, or a reason why there is none; the hits in it.
    fn hear(&mut self) -> u64 {
        loop {
            match self.reports.recv_timeout(Duration::from_secs(60)).unwrap() {
                Report::Snapshot(snapshot) => {
                    if self.app.take(*snapshot) {
                        break;
                    }
                }
                Report::Anew => self.app.anew(),
                Report::Totals => self.app.begin_totals(),
                Report::Said(text) => {
                    self.said.push(text);
                    break;
                }
                Report::Over => self.said.push("over".into()),
                other => panic!("{other:?}"),
            }
        }
        self.hits()
    }

    fn hits(&self) -> u64 {
        self.app.snapshot.as_ref().unwrap().system.total.get(Figure::Hits).unwrap()
    }

    fn ask(&mut self, command: Command) -> u64 {
        self.commands.send(command).unwrap();
        self.hear()
    }

    fn step(&mut self, n: i32) -> u64 {
        self.ask(Command::Step(n))
    }
}

fn recorded(dir: &Path, intervals: u64, pause: u64) -> std::path::PathBuf {
    let path = dir.join("a");
    record(&path, &options(Output::Json, &path), samples(intervals, 3, pause));
    path
}

#[test]
fn one_walks_through_the_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 600, 0), None);
    assert_eq!(walk.hits(), 1);
    assert_eq!([walk.step(1), walk.step(5), walk.step(-1), walk.step(-4)], [2, 7, 6, 2]);
    assert_eq!(walk.ask(Command::Jump(60)), 62);
    assert_eq!(walk.ask(Command::Jump(300)), 362);
    // The charts have what was before it, in order and without a hole.
    let numbers: Vec<u64> = walk.app.history.iter().map(|m| m.number).collect();
    assert!(numbers.len() > 2 && numbers.windows(2).all(|w| w[0] + 1 == w[1]), "{numbers:?}");
    let heights: Vec<f64> = walk.app.history.iter().map(|m| m.values[0].unwrap()).collect();
    assert!(heights.windows(2).all(|w| (w[0] + 1.0 - w[1]).abs() < 1e-6), "{heights:?}");
    assert_eq!([walk.step(-1), walk.ask(Command::Jump(-60)), walk.step(-200)], [361, 301, 101]);
    assert_eq!(walk.ask(Command::Jump(-3600)), 1);
    assert!(walk.said.is_empty(), "{:?}", walk.said);
    walk.step(-1);
    assert_eq!((walk.hits(), walk.said.pop().unwrap().as_str()), (1, "the recording begins here"));
}

#[test]
fn it_ends_where_the_recording_ends_and_goes_back_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 100, 0), None);
    walk.commands.send(Command::Jump(3600)).unwrap();
    while walk.hits() != 100 {
        walk.hear();
    }
    assert_eq!(walk.said, ["over"]);
    assert_eq!([walk.step(-1), walk.step(-9), walk.step(10)], [99, 90, 100]);
}

#[test]
fn where_nothing_was_recorded_one_steps_across() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 40, 5000), None);
    assert_eq!([walk.step(20), walk.step(-1), walk.step(-1), walk.step(1)], [21, 20, 19, 20]);
    assert_eq!([walk.step(1), walk.step(-3)], [21, 18]);
}

#[test]
fn it_begins_where_it_is_told_to_and_what_was_before_can_be_reached() {
    let dir = tempfile::tempdir().unwrap();
    let path = recorded(dir.path(), 100, 0);
    // The n-th interval ends so many seconds behind the first sample.
    let mut walk = Walk::new(&path, Some("2026-11-21T09:00:31Z"));
    assert_eq!([walk.hits(), walk.step(-1), walk.step(-28)], [30, 29, 1]);
    let options = options(Output::Screen, &path);
    let when = When::parse("2026-11-22T09:00:31Z").unwrap();
    let failure = Tape::open(&options, (&path, Some(&when)), None).err().unwrap();
    assert_eq!(failure.code, Code::Usage);
}

#[test]
fn intervals_are_put_together_and_taken_apart_where_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 200, 0), None);
    walk.step(99);
    // Ten intervals, the last of them the one that was shown.
    assert_eq!(walk.ask(Command::Interval(Duration::from_secs(10))), (91..=100).sum::<u64>());
    assert_eq!([walk.step(1), walk.step(-1), walk.step(-1)], [1055, 955, 855]);
    assert_eq!(walk.ask(Command::Interval(Duration::from_secs(1))), 90);
}

#[test]
fn totals_begin_where_one_went_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 200, 0), None);
    let view = View { show: Show::Total, ..VIEW };
    walk.ask(Command::View(view));
    walk.ask(Command::Jump(150));
    let sum = |walk: &Walk| {
        let snapshot = walk.app.snapshot.as_ref().unwrap();
        let hits = |e: &Entry| snapshot.row(e).figures.get(Figure::Hits).unwrap();
        snapshot.entries.iter().map(hits).sum::<u64>()
    };
    assert_eq!((walk.hits(), sum(&walk)), (151, 151));
    assert_eq!(walk.app.since(), "09:02:31 on");
    walk.step(1);
    assert_eq!(sum(&walk), 151 + 152);
    walk.step(-2);
    assert_eq!((sum(&walk), walk.app.since()), (150, "09:02:30 on".into()));
}

#[test]
fn the_screen_is_of_the_recording_and_its_keys_go_through_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 30, 0), None);
    assert!(walk.app.paused && !walk.app.scene.told_of_ends);
    let host = walk.app.scene.host.clone();
    let text = frame(&mut walk.app);
    for part in ["replay every 1 s", "2026-11-21 09:00:02", "REPLAY paused", "Space play", &host] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Escaped, as everywhere.
    assert!(text.contains("\\x1b[2Jx") && !text.contains('\u{1b}'), "{text}");
    let app = &mut walk.app;
    assert_eq!(app.input(&key(KeyCode::Right)), [Effect::Step(1)]);
    assert_eq!(typed(app, "}"), [Effect::Jump(60)]);
    assert_eq!(typed(app, "("), [Effect::Jump(-3600)]);
    assert_eq!(typed(app, " ")[0], Effect::Hold(false));
    assert!(frame(app).contains("REPLAY playing"));
    assert_eq!(app.input(&key(KeyCode::Left)), [Effect::Hold(true), Effect::Step(-1)]);
    // What was recorded every second cannot be shown more closely.
    assert_eq!(typed(app, "-"), []);
    assert_eq!(typed(app, "e"), []);
    assert!(frame(app).contains("no more than that") || frame(app).contains("recorded"), "{}", frame(app));
}

#[test]
fn what_plays_goes_on_by_itself_and_names_are_those_of_then() {
    let dir = tempfile::tempdir().unwrap();
    let mut walk = Walk::new(&recorded(dir.path(), 30, 0), None);
    walk.commands.send(Command::CommandLines(vec![1])).unwrap();
    let report = walk.reports.recv_timeout(Duration::from_secs(60)).unwrap();
    // Process 1 of this machine has one; in the recording it has none.
    assert!(matches!(report, Report::CommandLines(lines) if lines == [(1, None)]));
    let began = Instant::now();
    assert_eq!(walk.ask(Command::Hold(false)), 2);
    assert!(began.elapsed() > Duration::from_millis(900), "at the pace of the recording");
}

/// Wherever reading begins, nothing that was recorded after it is left out, in how many segments that may be.
#[test]
fn where_the_clock_was_set_back_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut made = samples(600, 3, 0);
    made.iter_mut().skip(401).for_each(|s| s.time -= jiff::SignedDuration::from_secs(390));
    let times: Vec<_> = made.iter().map(|s| s.time).collect();
    record(&path, &options(Output::Json, &path), made);
    for first in [2, 100, 399, 400] {
        // Both clocks were there at these times: the first of them is found.
        let part = Part { from: Some(When::At(times[first])), onwards: true, ..Part::default() };
        let Opened { mut replay, mut clock, .. } = Replay::open(&path, &part, Box::new(|_| ())).unwrap();
        let hits = |sample: &Sample| sample.total.get(Counter::ReadHits);
        let mut before = hits(&replay.sample().unwrap());
        for n in first..=600 {
            assert_ne!(clock.until(Instant::now()).unwrap(), Wake::Over, "{first} {n}");
            let now = hits(&replay.sample().unwrap());
            assert_eq!(now - before, n as u64, "{first}");
            before = now;
        }
        assert_eq!(clock.until(Instant::now()).unwrap(), Wake::Over);
    }
}

#[test]
fn where_the_clock_was_set_back_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut made = samples(60, 3, 0);
    made.iter_mut().skip(31).for_each(|s| s.time -= jiff::SignedDuration::from_secs(20));
    record(&path, &options(Output::Json, &path), made);
    let mut walk = Walk::new(&path, None);
    assert_eq!([walk.step(29), walk.step(-1), walk.step(1)], [30, 29, 30]);
    // Across it: the next interval is told of with it, and time goes on.
    walk.step(1);
    assert_eq!(walk.hits(), 31);
    walk.step(-1);
    assert_eq!(walk.hits(), 31);
    assert!(walk.said.iter().any(|s| s.contains("set")), "{:?}", walk.said);
}
