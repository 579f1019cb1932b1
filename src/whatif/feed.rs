//! What the kernel programs send, handed to a simulation of the cache that it is about.

use std::time::Duration;
use std::time::Instant;

use super::Classic;
use super::Curve;
use super::Generations;
use super::Later;
use super::Prediction;
use super::Simulation;
use super::Statistics;
use super::curve::Fetched;
use super::curve::GENERATIONS_ERROR;
use super::curve::MODEL_ERROR;
use super::curve::MUCH_UNUSED;
use super::policy::Policy;
use super::simulation::first_rate;
use super::size::Size;
use super::told::About;
use super::twins;
use super::twins::Twins;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::kernel::Generations as Known;
use crate::kernel::Touches;
use crate::kernel::generations;
use crate::kernel::reclaim_gathers_statistics;
use crate::text::words;

/// How old the statistics of a cgroup are that the kernel goes by. It gathers them every two seconds, and before if somebody
/// asks; this is what comes nearest to measurements.
const FLUSH: Duration = Duration::from_secs(1);
/// Touches that are simulated between two looks at the clock.
const SOME: usize = 256;
/// What a simulation may take of the processor in any case, before fewer pages are followed.
const LEAST: Duration = Duration::from_millis(25);
/// How often the size is read: to ask more often would make the kernel gather its statistics more often.
const RESIZE: u32 = 2;

/// A cgroup that has a limit: where there is none, what a process uses is the cache of the machine.
pub(crate) fn limited(group: Option<String>) -> Option<String> {
    group.filter(|path| Size::read(Some(path)).is_some_and(|size| size.limit.is_some()))
}

/// What the kernel goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lru {
    /// The active and the inactive list, by such statistics of a cgroup.
    Lists(Statistics),
    /// Generations, as they are up to 6.13.
    Generations,
    /// Generations, as they are from 6.14 to 7.1.
    Later,
    /// Generations, as they are from 7.2 on.
    Counting,
}

impl Lru {
    fn of_this_kernel() -> Self {
        let enabled = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
        let enabled = u32::from_str_radix(enabled.trim().trim_start_matches("0x"), 16);
        match enabled.is_ok_and(|bits| bits & 1 != 0) {
            false => Self::Lists(statistics()),
            true => match generations() {
                Known::Linux6_1 => Self::Generations,
                Known::Linux6_14 => Self::Later,
                Known::Linux7_2 => Self::Counting,
            },
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Lists(_) => "active and inactive list",
            Self::Generations | Self::Later | Self::Counting => "multi-generational LRU",
        }
    }

    const fn error(self) -> f64 {
        match self {
            Self::Lists(_) | Self::Counting => MODEL_ERROR,
            Self::Generations | Self::Later => GENERATIONS_ERROR,
        }
    }

    /// With room for so many pages. `late`: of a cgroup with a limit, whose statistics are gathered now and then.
    fn policy(self, pages: usize, late: bool) -> Box<dyn Policy> {
        match self {
            Self::Lists(statistics) if late => {
                let one = || Classic::new(pages, statistics);
                Box::new(Twins::new([one(), one().stirred()], 0.0))
            }
            Self::Lists(_) => Box::new(Classic::new(pages, Statistics::Exact)),
            Self::Generations if late => {
                let one = || Generations::new(pages, late);
                Box::new(Twins::new([one(), one()], twins::AWAY))
            }
            Self::Generations => Box::new(Generations::new(pages, late)),
            Self::Later => Box::new(Later::new(pages, false)),
            Self::Counting => Box::new(Later::new(pages, true)),
        }
    }
}

/// What reclaim of a cgroup knows on this kernel.
fn statistics() -> Statistics {
    // SAFETY: takes a number.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let processors = u32::try_from(processors).unwrap_or(1).max(1);
    match reclaim_gathers_statistics() {
        true => Statistics::AtReclaim { processors },
        false => Statistics::Late,
    }
}

/// Of this thread.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn page_size() -> f64 {
    rustix::param::page_size() as f64
}

/// Touches on their way into a simulation.
pub(crate) struct Feed {
    touches: Touches,
    pub(crate) simulation: Simulation,
    group: Option<String>,
    size: Option<Size>,
    lru: Lru,
    /// Touches without room and pages not looked at: before this began, and now.
    before: Option<(u64, u64)>,
    lost: (u64, u64),
    flushed: Instant,
    flushes: u32,
    /// The limit is another one than when this began: what was seen is of both.
    limit_changed: bool,
}

impl Feed {
    /// About the cache of this cgroup; of the machine, if there is none.
    pub(crate) fn new(touches: Touches, group: Option<String>) -> Self {
        let size = Size::read(group.as_deref());
        let lru = Lru::of_this_kernel();
        let simulation = simulation(size.as_ref(), lru);
        let (flushed, flushes) = (Instant::now(), 0);
        let (before, lost) = (None, (0, 0));
        let limit_changed = false;
        let mut new =
            Self { touches, simulation, group, size, lru, before, lost, flushed, flushes, limit_changed };
        new.resize();
        new
    }

    /// Another run, whose cache may be another one: what came so far counts for nothing.
    pub(crate) fn begin(&mut self, group: Option<String>, lost: (u64, u64)) -> anyhow::Result<()> {
        self.touches.read()?;
        (self.before, self.lost) = (Some(lost), lost);
        self.restart(group);
        Ok(())
    }

    fn restart(&mut self, group: Option<String>) {
        self.size = Size::read(group.as_deref());
        self.group = group;
        self.simulation = simulation(self.size.as_ref(), self.lru);
        self.limit_changed = false;
        self.resize();
    }

    /// What is followed may have gone to another cgroup; whether it has. What it did before that was about another cache.
    pub(crate) fn is_in(&mut self, group: Option<String>) -> bool {
        let other = group != self.group;
        if other {
            self.restart(group);
        }
        other
    }

    /// The part of all pages that is to be followed.
    pub(crate) const fn rate(&self) -> f64 {
        self.simulation.rate()
    }

    /// The sizes of all caches, by what there is now.
    fn resize(&mut self) {
        let Some(size) = &self.size else { return };
        let held = self.simulation.held() * page_size();
        self.simulation.resize(|scale| Some(size.room(scale, held)? / page_size()));
    }

    /// Hands on what came since the last time, so long ago. `lost`: so far.
    pub(crate) fn fetch(&mut self, lost: (u64, u64), since: Duration) -> anyhow::Result<()> {
        let touches = self.touches.read()?;
        // No longer than it took them to come: else what is told would be told late, and nobody could end it.
        let (time, rate) = (since.max(LEAST), self.simulation.rate());
        let mut until = processor_time() + time;
        for some in touches.chunks(SOME) {
            some.iter().for_each(|touch| self.simulation.touch(touch));
            if processor_time() > until {
                self.simulation.choose(self.simulation.rate() / 2.0);
                until = processor_time() + time;
            }
        }
        // Those that were sent before fewer were chosen are no surplus of what is sent now.
        let sent = (touches.len() as f64 * self.simulation.rate() / rate) as usize;
        self.simulation.spare(sent, since.as_secs_f64(), lost.0 - self.lost.0);
        self.lost = lost;
        Ok(())
    }

    /// Does what the kernel does now and then, if it is time. True if the size was read anew.
    pub(crate) fn gather(&mut self, now: Instant) -> bool {
        if now.duration_since(self.flushed) < FLUSH {
            return false;
        }
        self.flushed = now;
        self.simulation.flush();
        self.flushes += 1;
        if self.flushes % RESIZE != 0 {
            return false;
        }
        if let Some(size) = Size::read(self.group.as_deref()) {
            self.limit_changed |= self.size.as_ref().is_some_and(|before| before.limit != size.limit);
            self.size = Some(size);
            self.resize();
        }
        true
    }

    /// A stretch of time has ended, in which this was counted.
    pub(crate) fn end_slice(&mut self, total: &Figures) {
        self.simulation.brought_in(fetched(total));
        self.simulation.end_slice(accesses(total));
    }

    /// What was not seen, in words.
    pub(crate) fn notes(&self, functions: bool) -> Vec<String> {
        let before = self.before.unwrap_or_default();
        let (dropped, beyond) = (self.lost.0 - before.0, self.lost.1 - before.1);
        let mut notes = Vec::new();
        if !functions {
            notes.push("pages that a fault finds in the cache are not told apart on this kernel".into());
        }
        if dropped > 0 {
            notes.push(words::many(
                dropped,
                "use of a page was not seen for want of room",
                "uses of pages were not seen for want of room",
            ));
        }
        if beyond > 0 {
            notes.push(words::many(
                beyond,
                "page of a very long request was not looked at",
                "pages of very long requests were not looked at",
            ));
        }
        notes
    }

    /// What came of it in so many seconds. `waited`: how long all accesses together that had to be brought in were waited for,
    /// nanoseconds, where that is known.
    pub(crate) fn prediction(&self, seconds: f64, waited: Option<u64>, mut notes: Vec<String>) -> Prediction {
        let curve = Curve::new(self.simulation.slices(), &self.simulation.sizes(), self.lru.error());
        // Of what there is a table of; and what came by faults was used by faults, which nobody counts.
        let told = curve.points.is_ok() && !curve.by_faults;
        if let Some(unused) = curve.unused.filter(|u| told && *u > MUCH_UNUSED) {
            notes.push(format!(
                "{:.0}% of what was brought in was read ahead and not used: the room that it takes is reckoned with, \
                 and that a larger cache is read ahead into more; what devices deliver of it comes on top of DEVICE/s",
                unused * 100.0
            ));
        }
        let about = About {
            group: self.group.as_deref(),
            size: self.size.as_ref(),
            seconds,
            waited,
            policy: self.lru.words(),
            limit_changed: self.limit_changed,
            long_history: self.lru == Lru::Generations,
            gone: self.group.as_deref().is_some_and(super::size::is_gone),
            notes,
        };
        Prediction::new(&curve, about)
    }
}

fn simulation(size: Option<&Size>, lru: Lru) -> Simulation {
    let late = size.is_some_and(|s| s.limit.is_some());
    let rate = size.map_or(1.0, |s| first_rate(s.room(1.0, 0.0).unwrap_or(0.0) / page_size()));
    Simulation::new(rate, |pages| lru.policy(pages, late))
}

/// Reads and faults of a stretch of time, and how many of them found a page that had been brought in for them, or nothing.
fn accesses(total: &Figures) -> Option<(u64, u64)> {
    let get = |figure| total.get(figure);
    let hits = get(Figure::Hits)? + get(Figure::FaultHits)?;
    let misses = get(Figure::Misses)? + get(Figure::ReadAheadHits)? + get(Figure::FaultMisses)?;
    Some((hits + misses, misses))
}

/// Pages that were brought in for reads and faults in a stretch of time; read ahead; of those read ahead then or before, used;
/// and missed by faults.
fn fetched(total: &Figures) -> Option<Fetched> {
    let get = |figure| total.get(figure);
    let ahead = get(Figure::ReadAheadPages)?;
    let faults = get(Figure::FaultMisses)?;
    let pages = ahead + get(Figure::Misses)? + faults;
    Some(Fetched { pages, ahead, used: get(Figure::ReadAheadHits)?, faults })
}
