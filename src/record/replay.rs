//! A recording as a source of samples.

mod between;
mod reading;
mod when;

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use between::Between;
use reading::Reading;

use super::frame::Session;
use super::names::Sink;
use super::names::Told;
use super::numbers::nanos;
use crate::exit::Failure;
use crate::plan::Engine;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::sample::Source;
use crate::wait::Wait;
use crate::wait::Wake;

pub use when::When;

/// Which part of a recording, and how closely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Intervals that end then or later.
    pub from: Option<When>,
    /// Intervals that end then or before.
    pub to: Option<When>,
    /// Intervals of this length; `None`: as they were recorded.
    pub every: Option<Duration>,
    /// Not only those that end at `from` or later, but all that were recorded after the first of them: where the clock was set
    /// back, these end earlier.
    pub onwards: bool,
}

/// Says what a reader of the figures must know.
pub type Say = Box<dyn FnMut(&str)>;

struct State {
    reading: Reading,
    between: Between,
    every: Option<Duration>,
    interval: Duration,
    /// Read, and not part of any interval yet.
    ahead: Option<reading::Read>,
    /// Read, and not handed out.
    next: Option<(Sample, Wake)>,
    /// When the interval is over that is under way, by the clock of the samples.
    due: Option<u64>,
    sink: Sink,
    /// Why it cannot be read on.
    error: Option<anyhow::Error>,
}

impl State {
    fn open(path: &Path, part: &Part, sink: Sink, say: Say) -> Result<Self, Failure> {
        let reading = Reading::open(path, part, say)?;
        let interval = Duration::from_nanos(reading.session.interval.max(1));
        Ok(Self {
            reading,
            between: Between::default(),
            every: part.every,
            interval,
            ahead: None,
            next: None,
            due: None,
            sink,
            error: None,
        })
    }

    fn pull(&mut self) -> anyhow::Result<Option<reading::Read>> {
        match self.ahead.take() {
            Some(read) => Ok(Some(read)),
            None => self.reading.next(),
        }
    }

    /// Where the counters of the first interval begin.
    fn first(&mut self) -> anyhow::Result<Option<Sample>> {
        let Some(read) = self.reading.next()? else { return Ok(None) };
        self.sink.borrow_mut().add(read.names, true, true);
        let sample = self.between.begin(read.sample)?;
        self.due = self.every.map(|every| sample.at.nanos().saturating_add(nanos(every)));
        Ok(Some(sample))
    }

    /// Reads the next interval; `false` at the end.
    fn advance(&mut self) -> anyhow::Result<bool> {
        let mut begun = false;
        let mut last = None;
        while let Some(mut read) = self.pull()? {
            if read.wake != Wake::Deadline {
                // Where another run of the recorder follows, this is not the end.
                self.ahead = self.reading.next()?;
                if self.ahead.is_some() {
                    read.wake = Wake::Deadline;
                }
            }
            // Names of the frames that an interval is put together from are all in use.
            self.sink.borrow_mut().add(read.names, read.key, !begun);
            if read.gap {
                self.between.begin(read.sample)?;
                continue;
            }
            begun = true;
            let at = self.between.add(read.sample, self.every.is_some());
            last = Some(read.wake);
            let half = nanos(self.interval) / 2;
            let over = self.due.is_none_or(|due| at.saturating_add(half) >= due);
            if over || read.wake != Wake::Deadline {
                break;
            }
        }
        let (Some(wake), Some(sample)) = (last, self.between.take()) else { return Ok(false) };
        if let (Some(due), Some(every)) = (&mut self.due, self.every) {
            let (at, every) =
                (sample.at.nanos().saturating_add(nanos(self.interval) / 2), nanos(every).max(1));
            *due =
                due.saturating_add((at.saturating_sub(*due) / every).saturating_add(1).saturating_mul(every));
        }
        self.next = Some((sample, wake));
        Ok(true)
    }
}

/// The samples of a recording.
pub struct Replay {
    state: Rc<RefCell<State>>,
    first: Option<Sample>,
    plan: Plan,
}

/// The clock of a recording: time passes as it is read.
pub struct Clock(Rc<RefCell<State>>);

/// A recording that was opened.
pub struct Opened {
    /// Its samples.
    pub replay: Replay,
    /// Its clock.
    pub clock: Clock,
    /// Its names.
    pub names: Told,
    /// What recorded it.
    pub session: Session,
    /// Length of its intervals.
    pub interval: Duration,
    /// When the first of them began.
    pub begins: jiff::Timestamp,
    /// What counted in the first interval.
    pub engine: Engine,
    /// Files were counted, in the first interval or by a later run.
    pub files: bool,
    /// Read calls were timed, then or later.
    pub latency: bool,
}

impl Replay {
    /// Opens a file, or the directory of a ring.
    ///
    /// # Errors
    /// When there is nothing that can be replayed.
    pub fn open(path: &Path, part: &Part, say: Say) -> Result<Opened, Failure> {
        let (names, sink) = Told::new();
        let mut state = State::open(path, part, sink, say)?;
        let first = state.first()?.ok_or_else(|| {
            Failure::usage("nothing was recorded in that time").remedy("replay it without a time")
        })?;
        let (session, begins) = (state.reading.session.clone(), first.time);
        let interval = part.every.unwrap_or(state.interval);
        // The first one may be of a run before, which counted something else.
        let told = state.reading.second().unwrap_or(&first);
        let plan = told.known.plan();
        let engine = plan.engine;
        let later = if told.by_file.is_some() && told.latency.is_some() {
            (true, true)
        } else {
            state.reading.later()
        };
        let (files, latency) = (told.by_file.is_some() || later.0, told.latency.is_some() || later.1);
        let state = Rc::new(RefCell::new(state));
        let clock = Clock(Rc::clone(&state));
        let replay = Self { state, first: Some(first), plan };
        Ok(Opened { replay, clock, names, session, interval, begins, engine, files, latency })
    }
}

impl Source for Replay {
    fn sample(&mut self) -> anyhow::Result<Sample> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        let mut state = self.state.borrow_mut();
        if state.next.is_none() && state.error.is_none() && !state.advance()? {
            anyhow::bail!("the recording is at its end");
        }
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let (sample, _) = state.next.take().ok_or_else(|| anyhow::anyhow!("the recording is at its end"))?;
        self.plan = sample.known.plan();
        Ok(sample)
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Wait for Clock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn until(&mut self, _: Instant) -> io::Result<Wake> {
        let mut state = self.0.borrow_mut();
        if state.next.is_none() {
            match state.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(Wake::Over),
                Err(error) => {
                    state.error = Some(error);
                    return Ok(Wake::Deadline);
                }
            }
        }
        Ok(state.next.as_ref().map_or(Wake::Over, |(_, wake)| *wake))
    }
}
