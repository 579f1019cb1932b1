//! A recording on the screen and as text. The position in it is an interval; going forward is reading on, going back is
//! opening the file anew a little before the place: what is kept is bounded, however long the recording is.

mod find;
mod scene;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use std::time::Instant;

use jiff::Timestamp;

use crate::exit::Failure;
use crate::live::keeper::Keeper;
use crate::live::snapshot::View;
use crate::pivot::Filter;
use crate::record::replay::Clock;
use crate::record::replay::Opened;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::replay::When;
use crate::sample::Source as _;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::top::options::Options;
use crate::top::sampler::Command;
use crate::top::sampler::Report;
use crate::top::scene::Scene;
use crate::top::settings::Settings;
use crate::wait::Wait as _;
use crate::wait::Wake;
use find::Place;

pub use scene::batch;
use scene::pivot;
use scene::scene;

/// So many ends of intervals are kept: going back to one of them, nothing has to be looked for.
const PASSED: usize = 600;

/// Where one is in a recording, and how it is read.
pub struct Tape {
    path: PathBuf,
    filter: Filter,
    files: bool,
    page_size: u64,
    /// Length of the intervals as they were recorded.
    recorded: Duration,
    /// What they are put together to.
    every: Option<Duration>,
    /// Where it begins.
    place: Place,
    /// The end of the interval that is shown, and its length.
    at: Timestamp,
    length: Duration,
    /// What it takes to read an interval.
    cost: Duration,
    playing: bool,
    pending: Option<Command>,
    /// Ends of the intervals that were read since it was opened last, as far as they are kept.
    passed: VecDeque<Timestamp>,
    /// What a person must know of what was read.
    said: Rc<RefCell<String>>,
}

/// What the loop over commands ends with.
enum Then {
    /// Nobody listens any more.
    Over,
    /// Reading begins anew there.
    Go(Place),
}

impl Tape {
    /// Opens a recording for the screen.
    ///
    /// # Errors
    /// When nothing of it can be shown.
    pub fn open(
        options: &Options,
        (path, from): (&Path, Option<&When>),
        config: Option<PathBuf>,
    ) -> Result<(Self, Scene, Settings), Failure> {
        let said = Rc::new(RefCell::new(String::new()));
        let notes = Rc::clone(&said);
        let say = move |text: &str| *notes.borrow_mut() = foreign::line(text).into_owned();
        let every = options.changes.interval;
        let part = Part { from: from.cloned(), to: None, every };
        let mut opened = Replay::open(path, &part, Box::new(say))?;
        let (mut scene, settings) = scene(options, &opened, config)?;
        let mut tape = Self {
            path: path.to_path_buf(),
            filter: options.chosen.recorded(),
            files: scene.files,
            page_size: scene.page_size,
            recorded: scene.replay.as_ref().map_or(Duration::from_secs(1), |r| r.recorded),
            every: every.filter(|e| Some(*e) > scene.replay.as_ref().map(|r| r.recorded)),
            place: Place::default(),
            at: opened.begins,
            length: opened.interval,
            cost: Duration::ZERO,
            playing: false,
            pending: None,
            passed: VecDeque::new(),
            said: Rc::default(),
        };
        let began = Instant::now();
        let first = tape.first(&mut opened)?;
        tape.cost = began.elapsed();
        let notice = std::mem::take(&mut *said.borrow_mut());
        scene.notice = (!notice.is_empty()).then_some(notice);
        if from.is_some() {
            tape.place = tape.around(first)?.unwrap_or_default();
        }
        Ok((tape, scene, settings))
    }

    /// The end of the first interval: there must be one.
    fn first(&self, opened: &mut Opened) -> Result<Timestamp, Failure> {
        opened.replay.sample()?;
        if opened.clock.until(Instant::now()).map_err(anyhow::Error::from)? == Wake::Over {
            return Err(Failure::usage(format!(
                "there is no whole interval in {}",
                Foreign::from(self.path.as_path())
            )));
        }
        Ok(opened.replay.sample()?.time)
    }

    /// Shows it, and does what it is asked, until nobody listens any more.
    ///
    /// # Errors
    /// When it cannot be read on.
    pub fn work(
        mut self,
        mut view: View,
        commands: &Receiver<Command>,
        report: &dyn Fn(Report) -> bool,
    ) -> Result<(), Failure> {
        loop {
            match self.show(&mut view, commands, report)? {
                Then::Over => return Ok(()),
                Then::Go(place) => self.place = place,
            }
        }
    }

    /// Shows what is at the place, and goes on from there.
    fn show(
        &mut self,
        view: &mut View,
        commands: &Receiver<Command>,
        report: &dyn Fn(Report) -> bool,
    ) -> Result<Then, Failure> {
        let Opened { mut replay, mut clock, names, .. } = self.reopen(self.place.from)?;
        let pivot = pivot(self.filter.clone(), names);
        // Nobody is asked who lives: it is another time, and may be another machine.
        let keeper = Keeper::new(&mut replay, pivot, self.files, Box::new(|_| true))?;
        // They begin with what is shown first.
        let mut keeper = keeper.without_totals();
        self.passed.clear();
        report(Report::Anew);
        let lead = self.place.skip;
        self.run_to(&mut keeper, &mut clock, *view, report, |n, _| n <= lead, true)?;
        let mut due = Instant::now() + self.length;
        loop {
            let command = match self.pending.take() {
                Some(command) => command,
                None if self.playing => {
                    match commands.recv_timeout(due.saturating_duration_since(Instant::now())) {
                        Ok(command) => command,
                        Err(RecvTimeoutError::Disconnected) => return Ok(Then::Over),
                        Err(RecvTimeoutError::Timeout) => {
                            if !self.next(&mut keeper, &mut clock, *view, report)? {
                                self.playing = false;
                            }
                            // At the pace of the recording; what took longer is not made up for.
                            due = (due + self.length).max(Instant::now());
                            continue;
                        }
                    }
                }
                None => match commands.recv() {
                    Ok(command) => command,
                    Err(_) => return Ok(Then::Over),
                },
            };
            let listening = match command {
                Command::View(wanted) => {
                    *view = wanted;
                    report(Report::Snapshot(Box::new(keeper.again(*view))))
                }
                Command::Details(by, id, who) => {
                    let details = keeper.details(by, id, &who, self.page_size);
                    report(Report::Details(Box::new(details)))
                }
                Command::CommandLines(pids) => {
                    let line = |pid| (pid, keeper.command_line(pid));
                    report(Report::CommandLines(pids.into_iter().map(line).collect()))
                }
                Command::Hold(hold) => {
                    self.playing = !hold;
                    due = Instant::now() + self.length;
                    true
                }
                Command::Watch(id) => {
                    keeper.watch(id);
                    true
                }
                // This is how the screen goes back in what it has seen: there is no such thing here.
                Command::Back(_) | Command::Keep(..) => true,
                Command::Interval(length) => {
                    self.every = (length > self.recorded).then_some(length);
                    if let Some(place) = self.around(self.at)? {
                        return Ok(Then::Go(place));
                    }
                    true
                }
                Command::Step(n) => {
                    let n = self.all_steps(n, commands);
                    match n {
                        0 => true,
                        1 => self.next(&mut keeper, &mut clock, *view, report).map(|_| true)?,
                        n if n > 0 => {
                            let n = usize::try_from(n).unwrap_or(1);
                            self.run_to(&mut keeper, &mut clock, *view, report, |k, _| k < n, false)?;
                            true
                        }
                        n => match self.before(usize::try_from(n.unsigned_abs()).unwrap_or(1))? {
                            Some(place) => return Ok(Then::Go(place)),
                            None => report(Report::Said(self.nothing_before().into())),
                        },
                    }
                }
                Command::Jump(seconds) => {
                    let seconds = jiff::SignedDuration::from_secs(seconds.into());
                    let to = self.at.saturating_add(seconds).unwrap_or(self.at);
                    let near = seconds.unsigned_abs() <= self.interval() * self.lead();
                    let place = if seconds.is_positive() && near { None } else { self.around(to)? };
                    match place {
                        Some(place) => return Ok(Then::Go(place)),
                        None if seconds.is_positive() => {
                            let half = self.half();
                            let short = |_, at: Timestamp| at.saturating_add(half).is_ok_and(|at| at < to);
                            self.run_to(&mut keeper, &mut clock, *view, report, short, true)?;
                            true
                        }
                        None => report(Report::Said(self.nothing_before().into())),
                    }
                }
            };
            if !listening {
                return Ok(Then::Over);
            }
        }
    }

    /// A key that is held down asks for many steps: they are taken at once.
    fn all_steps(&mut self, mut n: i32, commands: &Receiver<Command>) -> i32 {
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Step(more) => n = n.saturating_add(more),
                other => {
                    self.pending = Some(other);
                    break;
                }
            }
        }
        n
    }

    /// The next interval; `false` at the end.
    fn next(
        &mut self,
        keeper: &mut Keeper<'_>,
        clock: &mut Clock,
        view: View,
        report: &dyn Fn(Report) -> bool,
    ) -> Result<bool, Failure> {
        if over(clock)? {
            report(Report::Over);
            self.tell(report);
            return Ok(false);
        }
        let snapshot = keeper.tick(view)?;
        self.is_at(snapshot.system.time, snapshot.system.seconds);
        report(Report::Snapshot(Box::new(snapshot)));
        self.tell(report);
        Ok(true)
    }

    /// Reads on as long as `more` says, which is told how many intervals there were and the end of the last one. What is
    /// passed goes into the charts only. With `anew`, totals begin with the last one.
    fn run_to(
        &mut self,
        keeper: &mut Keeper<'_>,
        clock: &mut Clock,
        view: View,
        report: &dyn Fn(Report) -> bool,
        more: impl Fn(usize, Timestamp) -> bool,
        anew: bool,
    ) -> Result<(), Failure> {
        keeper.hold(true);
        let began = Instant::now();
        let mut n = 0;
        while more(n, self.at) {
            if over(clock)? {
                report(Report::Over);
                break;
            }
            let mut snapshot = keeper.tick(view)?;
            n += 1;
            self.is_at(snapshot.system.time, snapshot.system.seconds);
            snapshot.early = more(n, self.at);
            report(Report::Snapshot(Box::new(snapshot)));
        }
        if n > 0 {
            self.cost = began.elapsed() / u32::try_from(n).unwrap_or(1);
        }
        if anew {
            keeper.begin_totals();
            report(Report::Totals);
        }
        keeper.look_back(None);
        report(Report::Snapshot(Box::new(keeper.again(view))));
        self.tell(report);
        Ok(())
    }

    /// Something is missing, or the clock was set: it is said where one comes upon it.
    fn tell(&self, report: &dyn Fn(Report) -> bool) {
        let text = std::mem::take(&mut *self.said.borrow_mut());
        if !text.is_empty() {
            report(Report::Said(text));
        }
    }

    /// Why one cannot go back.
    fn nothing_before(&self) -> &'static str {
        match self.set_back() {
            true => "the clock was set back here: what was before it is found with '--from'",
            false => "the recording begins here",
        }
    }

    fn is_at(&mut self, at: Timestamp, seconds: f64) {
        if self.passed.len() == PASSED {
            self.passed.pop_front();
        }
        self.passed.push_back(at);
        self.at = at;
        self.length = Duration::try_from_secs_f64(seconds).unwrap_or(self.recorded);
    }
}

fn over(clock: &mut Clock) -> Result<bool, Failure> {
    Ok(clock.until(Instant::now()).map_err(anyhow::Error::from)? == Wake::Over)
}
