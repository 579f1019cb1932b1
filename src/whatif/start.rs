//! `cachestat --what-if`: watches for a time, then says what another size of the cache would bring.

use std::io;
use std::time::Duration;
use std::time::Instant;

use super::Classic;
use super::Curve;
use super::Generations;
use super::Policy;
use super::Simulation;
use super::curve::GENERATIONS_ERROR;
use super::curve::MODEL_ERROR;
use super::simulation::first_rate;
use super::size;
use super::size::Size;
use super::view::Shown;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::kernel::Touches;
use crate::live::Live;
use crate::options::Chosen;
use crate::options::Counting;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Wants;
use crate::privilege::Role;
use crate::sample::Source as _;
use crate::session::Session;
use crate::text::foreign;
use crate::text::output;
use crate::wait;
use crate::wait::Process;
use crate::wait::Wait as _;
use crate::wait::Wake;

/// How often touches are fetched.
const STEP: Duration = Duration::from_millis(50);
/// How old the statistics of a cgroup are that the kernel goes by. It gathers them every two seconds, and before if somebody
/// asks; this is what comes nearest to measurements.
const FLUSH: Duration = Duration::from_secs(1);
/// How often the size is read: to ask more often would make the kernel gather its statistics more often.
const RESIZE: u32 = 2;
/// Stretches of time that are kept apart.
const SLICES: u32 = 32;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to watch.
    pub time: Duration,
    /// One object of JSON instead of a table.
    pub json: bool,
    /// What counts.
    pub chosen: Chosen,
    /// How it is counted.
    pub counting: Counting,
}

/// Watches, and prints the curve.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn what_if(options: &Options) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    let process = options.chosen.pid.map(Process::open).transpose()?;
    let names = System::new();
    let (filter, only) = options.chosen.look_up(&names)?;
    let group = match (&only.cgroup, options.chosen.pid) {
        (Some(group), _) => Some(group.path.clone()),
        (None, Some(pid)) => limited(size::cgroup_of(pid)),
        (None, None) => None,
    };
    let mut pivot = Pivot { by: None, top: 0, filter, names: Box::new(names) };
    let wants = Wants { touches: true, ..Wants::default() };
    let mut session = Session::open(&options.counting.session(wants, only))
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if options.counting.explain {
        return output::print(&foreign::lines(&(session.explain() + &Role::Count.explain())), out);
    }
    let functions = session.plan().brackets != crate::plan::Brackets::Tracepoints;
    let mut wait = wait::System::new(process).map_err(anyhow::Error::from)?;
    let mut watch = Watch::new(&mut session, group)?;
    Role::Count.take(&[])?;
    let began = Instant::now();
    let ended = watch.run(&mut pivot, &mut wait, options.time)?;
    let seconds = began.elapsed().as_secs_f64();
    let notes = watch.notes(options, functions, ended);
    let model = if watch.generations { GENERATIONS_ERROR } else { MODEL_ERROR };
    let curve = Curve::new(watch.simulation.slices(), &watch.simulation.sizes(), model);
    let shown = Shown {
        curve: &curve,
        size: watch.size.as_ref(),
        group: watch.group.as_deref(),
        seconds,
        chosen: &options.chosen.words(),
        policy: if watch.generations { "multi-generational LRU" } else { "active and inactive list" },
        notes: &notes,
    };
    output::print(&if options.json { shown.json() } else { shown.text() }, out)
}

/// A cgroup that has a limit: where there is none, what a process uses is the cache of the machine.
fn limited(group: Option<String>) -> Option<String> {
    group.filter(|path| Size::read(Some(path)).is_some_and(|size| size.limit.is_some()))
}

/// Whether the multi-generational LRU is on.
fn generations() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    let enabled = u32::from_str_radix(enabled.trim().trim_start_matches("0x"), 16);
    enabled.is_ok_and(|bits| bits & 1 != 0)
}

/// What is being watched.
struct Watch<'a> {
    live: Live<'a, Session>,
    touches: Touches,
    simulation: Simulation,
    group: Option<String>,
    size: Option<Size>,
    generations: bool,
    dropped: u64,
    beyond: u64,
}

impl<'a> Watch<'a> {
    fn new(session: &'a mut Session, group: Option<String>) -> anyhow::Result<Self> {
        let touches = session.attached().touches()?;
        let size = Size::read(group.as_deref());
        let late = size.as_ref().is_some_and(|s| s.limit.is_some());
        let rate = size.as_ref().map_or(1.0, |s| first_rate(s.room(1.0).unwrap_or(0.0) / page_size()));
        let generations = generations();
        let policy = |pages| -> Box<dyn Policy> {
            if generations { Box::new(Generations::new(pages)) } else { Box::new(Classic::new(pages, late)) }
        };
        let simulation = Simulation::new(rate, policy);
        session.attached().choose(rate);
        let live = Live::new(session)?;
        let mut new = Self { live, touches, simulation, group, size, generations, dropped: 0, beyond: 0 };
        new.resize();
        Ok(new)
    }

    /// The sizes of all caches, by what there is now.
    fn resize(&mut self) {
        let Some(size) = &self.size else { return };
        self.simulation.resize(|scale| Some(size.room(scale)? / page_size()));
    }

    /// Until the time is over, a signal comes, or the process that is watched has ended; which of them.
    fn run(&mut self, pivot: &mut Pivot, wait: &mut wait::System, time: Duration) -> anyhow::Result<Wake> {
        let began = wait.now();
        let slice = time / SLICES;
        let (mut slices, mut flushes, mut flushed, mut fetched) = (0, 0, began, began);
        loop {
            let wake = wait.until((fetched + STEP).min(began + time))?;
            let now = wait.now();
            let over = wake != Wake::Deadline || now >= began + time;
            let ends = over || now >= began + slice * (slices + 1);
            // What has ended by now is told before it is fetched.
            if ends {
                self.live.tick()?;
            }
            self.fetch(now.duration_since(fetched))?;
            fetched = now;
            if ends {
                let total = self.live.interval(pivot).total;
                self.simulation.end_slice(accesses(&total));
                slices = (now.duration_since(began).as_nanos() / slice.as_nanos().max(1)) as u32;
            }
            if over {
                return Ok(wake);
            }
            if now.duration_since(flushed) >= FLUSH {
                flushed = now;
                self.simulation.flush();
                flushes += 1;
                if flushes % RESIZE != 0 {
                    continue;
                }
                if let Some(size) = Size::read(self.group.as_deref()) {
                    self.size = Some(size);
                    self.resize();
                }
            }
        }
    }

    /// Hands on what came since the last time.
    fn fetch(&mut self, since: Duration) -> anyhow::Result<()> {
        let touches = self.touches.read()?;
        for touch in &touches {
            self.simulation.touch(touch);
        }
        let attached = self.live.source().attached();
        let (dropped, beyond) = attached.touches_lost();
        self.simulation.spare(touches.len(), since.as_secs_f64(), dropped - self.dropped);
        (self.dropped, self.beyond) = (dropped, beyond);
        attached.choose(self.simulation.rate());
        Ok(())
    }

    /// What makes the prediction less than it could be.
    fn notes(&self, options: &Options, functions: bool, ended: Wake) -> Vec<String> {
        let mut notes = Vec::new();
        match ended {
            Wake::Deadline | Wake::Over => {}
            Wake::Interrupt => notes.push("interrupted before the time was over".into()),
            Wake::Ended => notes.push("the process ended before the time was over".into()),
        }
        if options.chosen.pid.is_some() || options.chosen.comm.is_some() {
            notes.push("as if nobody else used this cache: others were left out".into());
        }
        if !functions {
            notes.push("pages that a fault finds in the cache are not told apart on this kernel".into());
        }
        if self.dropped > 0 {
            notes.push(format!("{} uses of pages were not seen for want of room", self.dropped));
        }
        if self.beyond > 0 {
            notes.push(format!("{} pages of very long requests were not looked at", self.beyond));
        }
        notes
    }
}

fn page_size() -> f64 {
    rustix::param::page_size() as f64
}

/// Reads and faults of a stretch of time, and how many of them found a page that had been brought in for them, or nothing.
fn accesses(total: &Figures) -> Option<(u64, u64)> {
    let get = |figure| total.get(figure);
    let hits = get(Figure::Hits)? + get(Figure::FaultHits)?;
    let misses = get(Figure::Misses)? + get(Figure::ReadAheadHits)? + get(Figure::FaultMisses)?;
    Some((hits + misses, misses))
}
