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

/// What comes after a command.
enum Then {
    /// The next one.
    On,
    /// Nobody listens any more.
    Over,
    /// Reading begins anew there.
    Go(Place),
}

/// On, as long as somebody listens.
fn on(listening: bool) -> Then {
    if listening { Then::On } else { Then::Over }
}

/// What is read from, from one place on.
struct Head<'a> {
    keeper: Keeper<'a>,
    clock: Clock,
    view: &'a mut View,
    report: &'a dyn Fn(Report) -> bool,
    /// When the next interval is shown, while it plays.
    due: Instant,
}

/// What becomes of totals when the place is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Totals {
    GoOn,
    BeginAnew,
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
        let part = Part { from: from.cloned(), to: None, every, onwards: false };
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
                Some(place) => self.place = place,
                None => return Ok(()),
            }
        }
    }

    /// Shows what is at the place, and goes on from there, until it begins anew elsewhere; `None`: nobody listens any more.
    fn show(
        &mut self,
        view: &mut View,
        commands: &Receiver<Command>,
        report: &dyn Fn(Report) -> bool,
    ) -> Result<Option<Place>, Failure> {
        let Opened { mut replay, clock, names, .. } = self.reopen(self.place.from)?;
        let pivot = pivot(self.filter.clone(), names);
        // Nobody is asked who lives: it is another time, and may be another machine.
        let keeper = Keeper::new(&mut replay, pivot, self.files, Box::new(|_| true))?;
        // They begin with what is shown first.
        let keeper = keeper.without_totals();
        let mut head = Head { keeper, clock, view, report, due: Instant::now() };
        self.passed.clear();
        report(Report::Anew);
        let lead = self.place.skip;
        self.run_to(&mut head, |n, _| n <= lead, Totals::BeginAnew)?;
        head.due = Instant::now() + self.length;
        while let Some(command) = self.command(&mut head, commands)? {
            match self.perform(command, &mut head, commands)? {
                Then::On => {}
                Then::Over => return Ok(None),
                Then::Go(place) => return Ok(Some(place)),
            }
        }
        Ok(None)
    }

    /// The next command; meanwhile it plays on. `None`: there will be none.
    fn command(
        &mut self,
        head: &mut Head<'_>,
        commands: &Receiver<Command>,
    ) -> Result<Option<Command>, Failure> {
        loop {
            if let Some(command) = self.pending.take() {
                return Ok(Some(command));
            }
            if !self.playing {
                return Ok(commands.recv().ok());
            }
            match commands.recv_timeout(head.due.saturating_duration_since(Instant::now())) {
                Ok(command) => return Ok(Some(command)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if !self.next(head)? {
                        self.playing = false;
                    }
                    // At the pace of the recording; what took longer is not made up for.
                    head.due = (head.due + self.length).max(Instant::now());
                }
            }
        }
    }

    fn perform(
        &mut self,
        command: Command,
        head: &mut Head<'_>,
        commands: &Receiver<Command>,
    ) -> Result<Then, Failure> {
        let report = head.report;
        Ok(match command {
            Command::View(wanted) => {
                *head.view = wanted;
                on(report(Report::Snapshot(Box::new(head.keeper.again(wanted)))))
            }
            Command::Details(by, id, who) => {
                let details = head.keeper.details(by, id, &who, self.page_size);
                on(report(Report::Details(Box::new(details))))
            }
            Command::CommandLines(pids) => {
                let line = |pid| (pid, head.keeper.command_line(pid));
                on(report(Report::CommandLines(pids.into_iter().map(line).collect())))
            }
            Command::Hold(hold) => {
                self.playing = !hold;
                head.due = Instant::now() + self.length;
                Then::On
            }
            Command::Watch(id) => {
                head.keeper.watch(id);
                Then::On
            }
            // This is how the screen goes back in what it has seen: there is no such thing here.
            Command::Back(_) | Command::Keep(..) => Then::On,
            Command::Interval(length) => {
                self.every = (length > self.recorded).then_some(length);
                self.around(self.at)?.map_or(Then::On, Then::Go)
            }
            Command::Step(n) => self.step(n, head, commands)?,
            Command::Jump(seconds) => self.jump(seconds, head)?,
        })
    }

    /// So many intervals on, or back.
    fn step(&mut self, n: i32, head: &mut Head<'_>, commands: &Receiver<Command>) -> Result<Then, Failure> {
        match self.all_steps(n, commands) {
            0 => {}
            1 => _ = self.next(head)?,
            n if n > 0 => {
                let n = usize::try_from(n).unwrap_or(1);
                self.run_to(head, |k, _| k < n, Totals::GoOn)?;
            }
            n => {
                let place = self.before(usize::try_from(n.unsigned_abs()).unwrap_or(1))?;
                return Ok(place.map_or_else(|| on((head.report)(self.nothing_before())), Then::Go));
            }
        }
        Ok(Then::On)
    }

    /// So many seconds on, or back.
    fn jump(&mut self, seconds: i32, head: &mut Head<'_>) -> Result<Then, Failure> {
        let seconds = jiff::SignedDuration::from_secs(seconds.into());
        let to = self.at.saturating_add(seconds).unwrap_or(self.at);
        let near = seconds.unsigned_abs() <= self.interval() * self.lead();
        let place = if seconds.is_positive() && near { None } else { self.around(to)? };
        Ok(match place {
            Some(place) => Then::Go(place),
            None if seconds.is_positive() => {
                let half = self.half();
                let short = |_, at: Timestamp| at.saturating_add(half).is_ok_and(|at| at < to);
                self.run_to(head, short, Totals::BeginAnew)?;
                Then::On
            }
            None => on((head.report)(self.nothing_before())),
        })
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
    fn next(&mut self, head: &mut Head<'_>) -> Result<bool, Failure> {
        let report = head.report;
        if over(&mut head.clock)? {
            report(Report::Over);
            self.tell(report);
            return Ok(false);
        }
        let snapshot = head.keeper.tick(*head.view)?;
        self.is_at(snapshot.system.time, snapshot.system.seconds);
        report(Report::Snapshot(Box::new(snapshot)));
        self.tell(report);
        Ok(true)
    }

    /// Reads on as long as `more` says, which is told how many intervals there were and the end of the last one. What is
    /// passed goes into the charts only. Totals that begin anew do so with the last one.
    fn run_to(
        &mut self,
        head: &mut Head<'_>,
        more: impl Fn(usize, Timestamp) -> bool,
        totals: Totals,
    ) -> Result<(), Failure> {
        let report = head.report;
        head.keeper.hold(true);
        let began = Instant::now();
        let mut n = 0;
        while more(n, self.at) {
            if over(&mut head.clock)? {
                report(Report::Over);
                break;
            }
            let mut snapshot = head.keeper.tick(*head.view)?;
            n += 1;
            self.is_at(snapshot.system.time, snapshot.system.seconds);
            snapshot.early = more(n, self.at);
            report(Report::Snapshot(Box::new(snapshot)));
        }
        if n > 0 {
            self.cost = began.elapsed() / u32::try_from(n).unwrap_or(1);
        }
        if totals == Totals::BeginAnew {
            head.keeper.begin_totals();
            report(Report::Totals);
        }
        head.keeper.look_back(None);
        report(Report::Snapshot(Box::new(head.keeper.again(*head.view))));
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

    /// Says why one cannot go back.
    fn nothing_before(&self) -> Report {
        let why = match self.set_back() {
            true => "the clock was set back here: what was before it is found with '--from'",
            false => "the recording begins here",
        };
        Report::Said(why.into())
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
