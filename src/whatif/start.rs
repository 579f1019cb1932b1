//! `cachestat --what-if`: watches for a time, then says what another size of the cache would bring.

use std::io;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use super::Prediction;
use super::feed::Feed;
use super::told;
use super::whose::Whose;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::live::Live;
use crate::live::Relief;
use crate::options::Chosen;
use crate::options::Counting;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::output;
use crate::wait;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// How often touches are fetched.
pub(crate) const STEP: Duration = Duration::from_millis(50);
/// Stretches of time that are kept apart.
const SLICES: u32 = 32;
/// The first of them, where it is to be said before the end what is known so far; longer ones later.
const STRETCH: Duration = Duration::from_millis(250);

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to watch.
    pub time: Duration,
    /// How often to say what is known so far; `None`: at the end alone.
    pub so_far: Option<Duration>,
    /// One object of JSON instead of a table.
    pub json: bool,
    /// Read calls are timed, to say how many would wait.
    pub latency: bool,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
}

/// Watches, and prints the curve; what it says. `None`: it was only to be told how that is counted. `writes`: where whoever asks
/// will write a file.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn what_if(options: &Options, writes: Option<&Path>) -> Result<Option<Prediction>, Failure> {
    let out = &mut io::stdout().lock();
    let processes = options.chosen.watch()?;
    if let Some(notice) = options.chosen.notice() {
        output::say(&format!("cachestat: notice: {notice}"));
    }
    let names = System::new();
    let (filter, only) = options.chosen.look_up(&names, processes.seen)?;
    let whose = Whose::find(&only)?;
    let unplaced = (whose == Whose::Unknown).then(|| told::UNPLACED.to_owned());
    let mut pivot = Pivot { by: None, top: 0, filter, names: Box::new(names) };
    let wants = Wants { touches: true, latency: options.latency, ..Wants::default() };
    let mut wait = wait::System::new(processes).map_err(anyhow::Error::from)?;
    let open = || Session::open(&options.counting.session(wants, only));
    let Some(mut session) = wait.unless_asked(open)? else { return Ok(None) };
    if options.counting.explain {
        output::print(&session.explained(Role::Count, options.json), out)?;
        return Ok(None);
    }
    let functions = session.plan().brackets != crate::plan::Brackets::Tracepoints;
    let mut watch = Watch::new(&mut session, whose.group())?;
    Role::Count.take(writes.as_slice())?;
    let began = Instant::now();
    let mut tell = |watch: &Watch<'_>, ended: Wake| {
        let notes = unplaced.iter().cloned().chain(watch.notes(options, functions, ended)).collect();
        let waited = watch.waited.filter(|_| options.latency);
        let mut prediction = watch.feed.prediction(began.elapsed().as_secs_f64(), waited, notes);
        if prediction.curve.is_some() && options.latency {
            prediction.notes.extend(watch.of_waiting());
        }
        let text = || prediction.text(&options.chosen.brief());
        output::print(&if options.json { prediction.json() } else { text() }, out)?;
        Ok(prediction)
    };
    let ended =
        watch.run(&mut pivot, &mut wait, options, &mut |watch, ended| tell(watch, ended).map(drop))?;
    tell(&watch, ended).map(Some)
}

/// What is being watched.
struct Watch<'a> {
    live: Live<'a, Session>,
    feed: Feed,
    /// How long read calls with misses took, nanoseconds; `None`: not known.
    waited: Option<u64>,
    /// Pages that faults missed.
    faulted: u64,
}

impl<'a> Watch<'a> {
    fn new(session: &'a mut Session, group: Option<String>) -> anyhow::Result<Self> {
        let feed = Feed::new(session.attached().touches()?, group);
        session.attached().choose(feed.rate());
        Ok(Self { live: Live::new(session)?, feed, waited: Some(0), faulted: 0 })
    }

    /// Until the time is over, a signal comes, or the process that is watched has ended; which of them. `tell`: what is known so
    /// far, where that is wanted.
    fn run(
        &mut self,
        pivot: &mut Pivot,
        wait: &mut wait::System,
        options: &Options,
        tell: &mut dyn FnMut(&Self, Wake) -> Result<(), Failure>,
    ) -> Result<Wake, Failure> {
        let (began, time) = (wait.now(), options.time);
        let mut slice = if options.so_far.is_some() { STRETCH.min(time / SLICES) } else { time / SLICES };
        let (mut fetched, mut ended, mut told) = (began, began, began);
        let mut relief = Relief::new(self.live.source(), began);
        loop {
            let wake = wait.until((fetched + STEP).min(began + time)).map_err(anyhow::Error::from)?;
            let now = wait.now();
            let over = wake != Wake::Deadline || now >= began + time;
            let ends = over || now >= ended + slice;
            // What has ended by now is told before it is fetched.
            if ends {
                self.live.tick()?;
                relief.done(now);
            } else if relief.due(ended + slice).is_some_and(|due| due <= now) {
                self.live.source().relieve()?;
                relief.done(now);
            }
            let attached = self.live.source().attached();
            self.feed.fetch(attached.touches_lost(), now.duration_since(fetched))?;
            attached.choose(self.feed.rate());
            fetched = now;
            if ends {
                let total = self.live.interval(pivot).total;
                self.feed.end_slice(&total);
                self.waited = self.waited.zip(total.get(Figure::StallNs)).map(|(all, some)| all + some);
                self.faulted += total.get(Figure::FaultMisses).unwrap_or(0);
                ended = if now >= ended + 2 * slice { now } else { ended + slice };
                if self.feed.simulation.slices().len() >= 2 * SLICES as usize {
                    self.feed.simulation.halve();
                    slice *= 2;
                }
            }
            if over {
                return Ok(wake);
            }
            self.feed.gather(now);
            if options.so_far.is_some_and(|each| ends && now >= told + each) {
                told = now;
                tell(self, wake)?;
            }
        }
    }

    /// What makes the prediction less than it could be.
    fn notes(&self, options: &Options, functions: bool, ended: Wake) -> Vec<String> {
        let mut notes = Vec::new();
        match ended {
            Wake::Deadline | Wake::Over => {}
            Wake::Interrupt => notes.push("interrupted before the time was over".into()),
            Wake::Ended => notes.push(format!("{} before the time was over", options.chosen.who_ended())),
        }
        if options.chosen.by_process() {
            notes.push("as if nobody else used this cache: others were left out".into());
        }
        notes.extend(self.feed.notes(functions));
        notes
    }

    /// What must be known of how many would wait.
    fn of_waiting(&self) -> Option<String> {
        match self.waited {
            None => Some("how long reads waited is not known on this kernel".into()),
            Some(_) if self.faulted > 0 => {
                Some("WAITING is of read calls that missed: how long faults waited is not among it".into())
            }
            Some(_) => None,
        }
    }
}
