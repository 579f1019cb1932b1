//! The whole of the command on a made-up kernel and a made-up clock; nothing sleeps.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use super::*;
use crate::cli::Args;
use crate::exit::Code;
use crate::figures::Figure;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Moment;
use crate::sample::Sample;
use crate::view;
use crate::view::Surroundings;
use crate::view::fixtures;

/// What happens while the command waits.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The deadline passes, and the command gets to run this many milliseconds later.
    Tick(u64),
    /// SIGINT, this many milliseconds after the wait began.
    Interrupt(u64),
    /// The process ends, this many milliseconds after the wait began.
    End(u64),
}

type Now = Rc<Cell<Duration>>;

struct FakeWait {
    start: Instant,
    now: Now,
    events: VecDeque<Event>,
    deadlines: Vec<u128>,
}

impl Wait for FakeWait {
    fn now(&self) -> Instant {
        self.start + self.now.get()
    }

    fn until(&mut self, deadline: Instant) -> io::Result<Wake> {
        let now = self.now.get();
        let deadline = deadline.duration_since(self.start);
        self.deadlines.push(deadline.as_millis());
        let (then, wake) = match self.events.pop_front() {
            Some(Event::Tick(late)) => (deadline.max(now) + Duration::from_millis(late), Wake::Deadline),
            Some(Event::Interrupt(after)) => (now + Duration::from_millis(after), Wake::Interrupt),
            Some(Event::End(after)) => (now + Duration::from_millis(after), Wake::Ended),
            None => return Err(io::Error::other("the command waits for what never comes")),
        };
        self.now.set(then);
        Ok(wake)
    }
}

/// A kernel that counts one hit in each millisecond: two of three by process 7, the others by process 8.
struct FakeSource {
    /// Hits at the last sample.
    hits: u64,
    now: Now,
    plan: Plan,
    /// The table of process 7 is gone from this time on.
    lost_at: Option<Duration>,
    /// Cannot be read from this time on.
    broken_at: Option<Duration>,
}

impl Source for FakeSource {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let now = self.now.get();
        if self.broken_at.is_some_and(|at| now >= at) {
            anyhow::bail!("the table is gone");
        }
        let hits = u64::try_from(now.as_millis()).unwrap();
        let mut sample = fixtures::sample(Moment::default(), now, &[(Counter::ReadHits, hits)]);
        // Rows hold what came since the sample before.
        let new = hits - std::mem::replace(&mut self.hits, hits);
        sample.rows = vec![
            fixtures::process(7, "seven", &[(Counter::ReadHits, new * 2 / 3)]),
            fixtures::process(8, "eight", &[(Counter::ReadHits, new - new * 2 / 3)]),
        ];
        if self.lost_at.is_some_and(|at| now >= at) {
            sample.lost.by_reason = vec![("recursion".into(), 5), ("processes_full".into(), hits)];
        }
        Ok(sample)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// A pipe that is closed, or a disk that is full, after some bytes.
struct FakeOut {
    bytes: Rc<RefCell<Vec<u8>>>,
    flushed: Rc<Cell<usize>>,
    room: usize,
    error: i32,
}

impl Write for FakeOut {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.borrow_mut();
        if bytes.len() + data.len() > self.room {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed.set(self.bytes.borrow().len());
        Ok(())
    }
}

struct Outcome {
    result: Result<(), Failure>,
    out: String,
    err: String,
    /// Deadlines waited for, in milliseconds after the start.
    deadlines: Vec<u128>,
}

/// A world to run in.
struct Fake {
    events: Vec<Event>,
    lost_at: Option<Duration>,
    broken_at: Option<Duration>,
    room: usize,
    error: i32,
}

impl Default for Fake {
    fn default() -> Self {
        Self { events: Vec::new(), lost_at: None, broken_at: None, room: usize::MAX, error: 0 }
    }
}

impl Fake {
    fn new(events: &[Event]) -> Self {
        Self { events: events.to_vec(), ..Self::default() }
    }

    fn run(self, options: &str) -> Outcome {
        let args = Args::parse_from(["cachestat"].into_iter().chain(options.split_whitespace()));
        let zone = jiff::tz::TimeZone::UTC;
        let mut view =
            view::new(&args.options(), Surroundings { zone, page_size: 4096, screen: Box::new(|| None) });
        let (start, now) = (Instant::now(), Now::default());
        let mut source = FakeSource {
            hits: 0,
            now: Rc::clone(&now),
            plan: fixtures::plan(&[]),
            lost_at: self.lost_at,
            broken_at: self.broken_at,
        };
        let mut wait = FakeWait { start, now, events: self.events.into(), deadlines: Vec::new() };
        let (bytes, flushed) = (Rc::default(), Rc::default());
        let mut out = FakeOut {
            bytes: Rc::clone(&bytes),
            flushed: Rc::clone(&flushed),
            room: self.room,
            error: self.error,
        };
        let mut err = Vec::new();
        let mut pivot = fixtures::pivot(&args);
        let world =
            World { source: &mut source, pivot: &mut pivot, wait: &mut wait, out: &mut out, err: &mut err };
        let result = run(&args.options(), view.as_mut(), world);
        let out = String::from_utf8(bytes.take()).unwrap();
        assert_eq!(flushed.get(), out.len(), "nothing is left in a buffer");
        Outcome { result, out, err: String::from_utf8(err).unwrap(), deadlines: wait.deadlines }
    }
}

use Event::End;
use Event::Interrupt;
use Event::Tick;

#[test]
fn count_intervals_and_no_total() {
    let o = Fake::new(&[Tick(0), Tick(0), Tick(0)]).run("--columns hits,interval_s 1 3");
    assert_eq!(o.result, Ok(()));
    assert_eq!(o.out, "    HITS  SECONDS\n".to_string() + &"    1000    1.000\n".repeat(3));
    assert_eq!((o.err.as_str(), o.deadlines), ("", vec![1000, 2000, 3000]));
}

#[test]
fn what_is_not_in_a_recording_is_told_from_what_did_nothing() {
    let told = |options: &str| Fake::new(&[Tick(0), End(10)]).run(options).err;
    let nothing = "notice: nothing of what is chosen";
    assert!(told("--replay a --comm mistyped").contains(nothing));
    assert!(!told("--replay a --comm seven").contains(nothing));
    assert!(!told("--replay a").contains(nothing));
    assert!(!told("--comm mistyped").contains(nothing), "it may come yet");
    // Rows were lost: its own may have been among them.
    let lost = Fake { lost_at: Some(Duration::from_millis(500)), ..Fake::new(&[Tick(0), End(10)]) };
    assert!(!lost.run("--replay a --comm mistyped").err.contains(nothing));
}

#[test]
fn the_beat_does_not_drift() {
    let o = Fake::new(&[Tick(30), Tick(5), Tick(49), Tick(0)]).run("--columns hits,interval_s 0.1 4");
    assert_eq!(o.deadlines, [100, 200, 300, 400]);
    let lines: Vec<_> = o.out.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines, ["130    0.130", "75    0.075", "144    0.144", "51    0.051"]);
}

#[test]
fn a_stall_gives_one_longer_interval_and_then_the_old_beat() {
    // Stopped for 5.2 s in the second interval.
    let o = Fake::new(&[Tick(0), Tick(5200), Tick(0), Tick(0)]).run("--columns hits,interval_s 1 4");
    assert_eq!(o.deadlines, [1000, 2000, 8000, 9000]);
    let lines: Vec<_> = o.out.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines, ["1000    1.000", "6200    6.200", "800    0.800", "1000    1.000"]);
    assert_eq!(o.err, "cachestat: warning: this interval took 6.200 s instead of 1 s\n");
}

#[test]
fn after_a_stall_no_interval_is_a_splinter() {
    let o = Fake::new(&[Tick(4900), Tick(0), Tick(0)]).run("--columns hits 1 3");
    assert_eq!(o.deadlines, [1000, 7000, 8000]);
}

#[test]
fn an_interrupt_prints_the_part_interval_and_the_total() {
    let o = Fake::new(&[Tick(0), Tick(0), Interrupt(250)]).run("");
    assert_eq!(o.result, Ok(()));
    insta::assert_snapshot!("interrupt_text", o.out);
    let o = Fake::new(&[Tick(0), Interrupt(250)]).run("--json");
    insta::assert_snapshot!("interrupt_json", o.out);
    let o = Fake::new(&[Tick(0), Interrupt(250)]).run("--csv --by process");
    insta::assert_snapshot!("interrupt_csv", o.out);
    let o = Fake::new(&[Tick(0), Interrupt(250)]).run("--bcc -T");
    insta::assert_snapshot!("interrupt_bcc", o.out);
}

#[test]
fn an_interrupt_before_the_first_interval_still_has_a_total() {
    let o = Fake::new(&[Interrupt(10)]).run("--columns hits 60");
    assert_eq!(o.out, "    HITS\n      10\n--- total of 0.010 s\n      10\n");
}

#[test]
fn one_process_is_shown_alone() {
    let o = Fake::new(&[Tick(0), Tick(0), Interrupt(300)]).run("-p 7 --by process");
    insta::assert_snapshot!("one_process", o.out);
    // A process that has done nothing yet has zeros: that is known.
    let o = Fake::new(&[Tick(0)]).run("-p 9 --columns hits,hit_ratio 1 1");
    assert_eq!(o.out, "    HITS HITRATIO\n       0        -\n");
}

/// Of the rows that are shown, of cgroups only, and where it is asked for.
#[test]
fn cgroups_are_asked_what_they_hold() {
    let run = |options: &str| Fake::new(&[Tick(0), Interrupt(250)]).run(options).out;
    let out = run("--by cgroup --columns hits,held_bytes,limit_bytes");
    let rows: Vec<_> = out.lines().filter(|line| line.ends_with("/user.slice")).collect();
    assert_eq!(rows.len(), 3, "two intervals and the total: {out}");
    assert!(rows.iter().all(|row| row.split_whitespace().skip(1).eq(["300", "-", "/user.slice"])), "{out}");
    assert!(out.contains("       -        - [total]"), "{out}");
    let csv = run("--csv --by cgroup --columns hits,held_bytes,limit_bytes");
    assert!(csv.lines().skip(1).any(|l| l.contains("/user.slice") && l.ends_with(",314572800,")), "{csv}");
    let other = run("--by comm --columns hits,held_bytes");
    assert!(!other.contains("300"), "{other}");
}

#[test]
fn the_end_of_the_process_ends_the_command() {
    let o = Fake::new(&[Tick(0), End(300)]).run("-p 7 --columns hits,interval_s");
    assert_eq!(o.result, Ok(()));
    assert_eq!(o.out, "    HITS  SECONDS\n     666    1.000\n     200    0.300\n");
    assert_eq!(o.err, "cachestat: process 7 has ended\n");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for room in [0, 10, 80] {
        let o = Fake { room, error: 32, ..Fake::new(&[Tick(0), Tick(0), Tick(0)]) }.run("");
        assert_eq!((o.result, o.err.as_str()), (Ok(()), ""), "{room}");
        assert!(o.deadlines.len() <= 1);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let o = Fake { room: 80, error: 28, ..Fake::new(&[Tick(0), Tick(0)]) }.run("");
    let failure = o.result.unwrap_err();
    assert_eq!(failure.code, Code::Failed);
    assert_eq!(failure.message, "cannot write the output: No space left on device (os error 28)");
}

#[test]
fn a_source_that_fails_is_an_error() {
    let broken_at = Some(Duration::from_millis(1500));
    let o = Fake { broken_at, ..Fake::new(&[Tick(0), Tick(0)]) }.run("--columns hits");
    assert_eq!(o.result, Err(Failure::failed("the table is gone")));
    assert_eq!(o.out, "    HITS\n    1000\n", "what was known is printed");
}

#[test]
fn losses_are_told_once_and_summed_at_the_end() {
    let lost_at = Some(Duration::from_millis(1500));
    let o = Fake { lost_at, ..Fake::new(&[Tick(0), Tick(0), Tick(0), Tick(0)]) }.run("--columns lost 1 4");
    assert_eq!(o.out, "    LOST\n       0\n    2005\n    1000\n    1000\n");
    assert_eq!(
        o.err,
        "cachestat: warning: 2005 events could not be accounted: figures are not exact (recursion 5); totals have them, \
         rows of threads and processes lack them (processes_full 2000)\n\
         remedy: more room with --table-size\n\
         cachestat: warning: over the whole run, 4005 events could not be accounted: figures are not exact \
         (recursion 5); totals have them, rows of threads and processes lack them (processes_full 4000)\n"
    );
}

#[test]
fn what_was_asked_for_and_is_not_known_is_named_with_the_reason() {
    let options =
        |words: &str| Args::parse_from(["cachestat"].into_iter().chain(words.split_whitespace())).options();
    let plan = fixtures::plan(&[Figure::StallNs, Figure::MetaHits]);
    let titles = |words: &str| -> Vec<&str> {
        options(words).untold(&plan).into_iter().map(|(title, _)| title).collect()
    };
    assert_eq!(titles("1"), [""; 0], "nobody has asked for it");
    assert_eq!(titles("-x 1"), [""; 0], "nor by its name");
    assert_eq!(titles("--latency 1"), ["STALL_S"]);
    assert_eq!(titles("--latency --columns hits,stall_s,meta_hits 1"), ["STALL_S", "METAHITS"]);
    assert_eq!(options("--latency 1").untold(&Plan::none(Engine::Classic)), [], "it says so itself");
    let why = options("--latency 1").untold(&plan).remove(0).1;
    assert_eq!(why, "not counted by this version");
    let plan = fixtures::plan(&[Figure::WriteHits]);
    let titles = |words: &str| -> Vec<&str> {
        options(words).untold(&plan).into_iter().map(|(title, _)| title).collect()
    };
    let asked = "--columns hit_ratio,write_hit_ratio,write_hits 1";
    assert_eq!(titles(asked), ["WRITE_HIT%", "WRHITS"], "a ratio is known where its parts are");
}
