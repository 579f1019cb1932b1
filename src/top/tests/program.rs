//! The whole program but for the kernel and the terminal: a source of samples, the thread that samples, the loop.

use std::io;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::*;
use crate::exit::Failure;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Plan;
use crate::sample::Counter;
use crate::sample::Sample;
use crate::sample::Source;
use crate::top::sampler;
use crate::top::sampler::Job;
use crate::top::sampler::Report;
use crate::top::screen;
use crate::top::screen::Events;
use crate::top::screen::Hands;
use crate::top::surface::Surface;
use crate::wait::Processes;

/// A kernel in which, each second, process 10 reads 4 pages that are there and process 20 dirties one; in the third
/// second there is process 4194305, which no Linux can have, and later it is gone.
struct Fake {
    plan: Plan,
    start: crate::sample::Moment,
    k: u64,
    /// The tenth sample cannot be read.
    fails: bool,
}

impl Source for Fake {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        let k = self.k;
        self.k += 1;
        if self.fails && k == 9 {
            anyhow::bail!("the kernel has had enough");
        }
        let totals = [(Counter::ReadHits, 4 * k), (Counter::Dirtied, k)];
        let mut sample = fixtures::sample(self.start, Duration::from_secs(k), &totals);
        let (me, you) = (std::process::id(), 1);
        sample.rows.push(fixtures::process(me, "reader", &[(Counter::ReadHits, 4)]));
        sample.rows.push(fixtures::process(you, "writer", &[(Counter::Dirtied, 1)]));
        if k == 3 {
            sample.rows.push(fixtures::process(4_194_305, "ghost", &[(Counter::ReadMisses, 7)]));
        }
        Ok(sample)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// What happens, one after the other.
enum Step {
    /// The next report of the thread that samples is waited for.
    Report,
    /// Reports are waited for until one of them is like this: intervals may end at any time.
    Until(fn(&Report) -> bool),
    /// Keys are typed.
    Type(&'static str),
    /// Something from outside.
    Event(screen::Event),
}

struct Script {
    steps: std::vec::IntoIter<Step>,
    reports: Receiver<Report>,
    typed: std::vec::IntoIter<char>,
    until: Option<fn(&Report) -> bool>,
}

impl Events for Script {
    fn next(&mut self, timeout: Option<Duration>) -> Result<Option<screen::Event>, Failure> {
        if timeout.is_some() {
            // A frame after every event, so that each of them is seen.
            return Ok(None);
        }
        if let Some(c) = self.typed.next() {
            let code = if c == '~' { KeyCode::Enter } else { KeyCode::Char(c) };
            return Ok(Some(screen::Event::Input(key(code))));
        }
        if let Some(wanted) = self.until {
            let report = self.reports.recv_timeout(Duration::from_secs(60)).map_err(Failure::failed)?;
            if wanted(&report) {
                self.until = None;
            }
            return Ok(Some(screen::Event::Report(report)));
        }
        match self.steps.next() {
            Some(Step::Until(wanted)) => {
                self.until = Some(wanted);
                self.next(timeout)
            }
            Some(Step::Report) => {
                let report = self.reports.recv_timeout(Duration::from_secs(60));
                report.map(|r| Some(screen::Event::Report(r))).map_err(Failure::failed)
            }
            Some(Step::Event(event)) => Ok(Some(event)),
            Some(Step::Type(text)) => {
                self.typed = text.chars().collect::<Vec<_>>().into_iter();
                self.next(timeout)
            }
            None => Err(Failure::failed("the script is over")),
        }
    }
}

#[derive(Default)]
struct Film {
    frames: Vec<String>,
    entered: u32,
    left: u32,
}

impl Surface for Film {
    fn draw(&mut self, app: &mut App) -> io::Result<()> {
        self.frames.push(frame(app));
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        self.entered += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.left += 1;
    }
}

fn play(steps: Vec<Step>, iterations: Option<u64>) -> (Result<(), Failure>, Film) {
    play_on(
        Fake { plan: fixtures::plan(&[]), start: crate::sample::Moment::now(), k: 0, fails: false },
        steps,
        iterations,
    )
}

fn play_on(mut source: Fake, steps: Vec<Step>, iterations: Option<u64>) -> (Result<(), Failure>, Film) {
    let (commands, asked) = mpsc::channel();
    let (reporter, reports) = mpsc::channel();
    let sampler = thread::spawn(move || {
        let names = Box::<fixtures::FakeNames>::default();
        let pivot = Pivot { by: None, top: usize::MAX, filter: Filter::default(), names };
        let job = Job {
            source: &mut source,
            pivot,
            files: true,
            processes: Processes::default(),
            view: VIEW,
            interval: Duration::from_millis(10),
            machine: None,
        };
        let report = |r| reporter.send(r).is_ok();
        if let Err(e) = sampler::work(job, &asked, &report) {
            let _ = reporter.send(Report::Failed(Failure::from(e)));
        }
    });
    let mut app = app((80, 24));
    let mut film = Film::default();
    let none = Vec::new().into_iter();
    let mut script = Script { steps: steps.into_iter(), reports, typed: none, until: None };
    let hands = Hands {
        commands: &commands,
        command_line: &|_| (),
        command_lines: &|_| (),
        look: &|_, _, _| (),
        parents: &|_| (),
        held: &|_| (),
        predict: &|_| (),
        suspend: &|| (),
        run: &|_| (),
        iterations,
    };
    let result = screen::turn(&mut app, &mut script, &mut film, &hands);
    drop((commands, script));
    sampler.join().unwrap();
    (result, film)
}

fn line<'a>(frame: &'a str, part: &str) -> &'a str {
    frame.lines().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no {part} in\n{frame}"))
}

#[test]
fn intervals_are_shown_until_q() {
    let (result, film) = play(vec![Step::Report, Step::Report, Step::Type("q")], None);
    assert_eq!(result, Ok(()));
    let last = film.frames.last().unwrap();
    assert!(line(last, "HITS    ").contains(" 4/s"), "{last}");
    assert!(line(last, "reader").contains("      4      0      0       0   100.00%"), "{last}");
    assert!(film.frames[0].contains("waiting"));
}

#[test]
fn totals_add_up_and_details_come_from_the_same_samples() {
    let steps = vec![
        Step::Report,
        Step::Report,
        Step::Type("mm"),
        Step::Until(|r| matches!(r, Report::Snapshot(s) if s.view.show == Show::Total)),
        Step::Type("~"),
        Step::Until(|r| matches!(r, Report::Details(_))),
        Step::Type("q"),
    ];
    let (result, film) = play(steps, None);
    assert_eq!(result, Ok(()));
    let totals = film.frames.iter().find(|f| f.contains("since start") && f.contains("writer")).unwrap();
    let hits: u64 = line(totals, "reader").split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(hits >= 8 && hits % 4 == 0, "{totals}");
    assert!(
        film.frames.iter().any(|f| f.contains("findings (since start)")),
        "{}",
        film.frames.last().unwrap()
    );
}

#[test]
fn a_process_that_has_ended_stays_for_three_intervals() {
    let steps: Vec<Step> = (0..8).map(|_| Step::Report).chain([Step::Type("q")]).collect();
    let (result, film) = play(steps, None);
    assert_eq!(result, Ok(()));
    // A frame before the first interval, then one for each, in the third of which it lived.
    let seen: Vec<bool> = film.frames.iter().map(|f| f.contains("ghost")).collect();
    assert_eq!(seen, [false, false, false, true, true, true, true, false, false]);
    assert!(!film.frames[3].contains("x ghost") && film.frames[4].contains("x ghost"));
    assert!(line(&film.frames[6], "ghost").contains("      7 "), "its last figures stay");
    assert!(line(&film.frames[4], "MISSES    ").contains(" 0/s"), "they are in no sum");
}

#[test]
fn signals_and_suspending_give_the_terminal_back() {
    let steps = vec![
        Step::Report,
        Step::Event(screen::Event::Signal(signal_hook::consts::SIGTSTP)),
        Step::Event(screen::Event::Signal(signal_hook::consts::SIGCONT)),
        Step::Report,
        Step::Event(screen::Event::Signal(signal_hook::consts::SIGTERM)),
    ];
    let (result, film) = play(steps, None);
    assert_eq!((result, film.left, film.entered), (Ok(()), 1, 2));
}

#[test]
fn it_ends_after_as_many_intervals_as_asked_for() {
    let (result, film) = play((0..5).map(|_| Step::Report).collect(), Some(2));
    assert_eq!((result, film.frames.len()), (Ok(()), 3));
}

#[test]
fn a_source_that_fails_ends_it_with_the_reason() {
    let source = Fake { plan: fixtures::plan(&[]), start: crate::sample::Moment::now(), k: 0, fails: true };
    let (result, _) = play_on(source, (0..12).map(|_| Step::Report).collect(), None);
    assert_eq!(result.unwrap_err().message, "the kernel has had enough");
}

#[test]
fn the_first_interval_of_ten_seconds_is_a_short_one() {
    let (commands, asked) = mpsc::channel();
    let (reporter, reports) = mpsc::channel();
    thread::spawn(move || {
        let mut source =
            Fake { plan: fixtures::plan(&[]), start: crate::sample::Moment::now(), k: 0, fails: false };
        let names = Box::<fixtures::FakeNames>::default();
        let pivot = Pivot { by: None, top: usize::MAX, filter: Filter::default(), names };
        let interval = Duration::from_secs(600);
        let job = Job {
            source: &mut source,
            pivot,
            files: true,
            processes: Processes::default(),
            view: VIEW,
            interval,
            machine: None,
        };
        let _ = sampler::work(job, &asked, &|r| reporter.send(r).is_ok());
    });
    let first = reports.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(first, Report::Snapshot(s) if s.early && s.fresh));
    drop(commands);
}
