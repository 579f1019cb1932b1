//! What is divided: the wall time or, where threads worked at the same time, the time of them all.

use serde::Serialize;

use super::Cause;
use super::Kind;
use super::units;
use crate::figures::Figure;
use crate::report::data::Run;
use crate::report::faults::For;
use crate::report::faults::for_data;
use crate::report::faults::waited_for;
use crate::report::findings::without_a_processor;
use crate::report::time::Parts;

/// What shares are shares of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// The wall time, or a difference of it.
    WallTime,
    /// The time of all threads in which they worked, or waited for storage or a processor: which of them the run as a whole
    /// waited for is not known.
    ThreadTime,
}

/// Seconds; what takes less is told in few words.
const TRIVIAL: f64 = 0.01;

/// A whole, of two runs or (the second 0) of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Divided {
    pub(super) of: Whole,
    /// Seconds.
    pub(super) then: f64,
    now: f64,
}

impl Divided {
    /// Of one run; `None` of none.
    pub(super) fn divide(run: &Run, parts: &Parts) -> Option<Self> {
        let (of, then) = match parts.explained().filter(|_| parts.overlap()) {
            Some(all) => (Whole::ThreadTime, all),
            None => (Whole::WallTime, run.wall_s),
        };
        (then > 0.0).then_some(Self { of, then, now: 0.0 })
    }

    /// Of two runs, the second of which took longer or shorter. `None` where the time of threads did not change with the wall
    /// time: then more of them at a time is what made the difference, or fewer.
    pub(super) fn between((then, a): (&Run, &Parts), (now, b): (&Run, &Parts)) -> Option<Self> {
        let wall = Self { of: Whole::WallTime, then: then.wall_s, now: now.wall_s };
        if !a.overlap() && !b.overlap() {
            return Some(wall);
        }
        let (x, y) = a.explained().zip(b.explained())?;
        let threads = Self { of: Whole::ThreadTime, then: x, now: y };
        let worth = threads.gain().abs() > 0.01 && threads.gain().abs() > 0.02 * x.max(y);
        (worth && (threads.gain() > 0.0) == (wall.gain() > 0.0)).then_some(threads)
    }

    /// Seconds that the later run took less.
    pub(super) fn gain(self) -> f64 {
        self.then - self.now
    }

    /// Shares of one run below this are not told in words: less is told of the time of threads, of which nobody knows which
    /// of it mattered, and of a run of some milliseconds, where a part of them is next to nothing.
    pub(super) fn least(self) -> f64 {
        match self.of {
            Whole::WallTime if self.then < TRIVIAL => 4.0 * super::LEAST,
            Whole::WallTime => super::LEAST,
            Whole::ThreadTime => 2.0 * super::LEAST,
        }
    }

    /// What the difference is called.
    pub(super) fn word(self) -> &'static str {
        match self.of {
            Whole::ThreadTime => "difference",
            Whole::WallTime if self.gain() > 0.0 => "gain",
            Whole::WallTime => "loss",
        }
    }

    /// What a reader must know of the shares that follow.
    pub(super) fn sentence(self) -> String {
        match self.of {
            Whole::WallTime => String::new(),
            Whole::ThreadTime => format!(
                " Threads worked at the same time, so it is their time that is divided, all added up ({} → {}).",
                units::wall(self.then),
                units::wall(self.now)
            ),
        }
    }
}

/// How much was warm. Of files that are mapped only faults are seen, and each brings the pages around it.
pub(super) fn warm(run: &Run) -> String {
    let least = run.volume(run.warm_pages);
    let by_faults = run.get(Figure::FaultHits).is_some_and(|hits| hits * 2 >= run.warm_pages);
    match run.get(Figure::FaultAround) {
        Some(around) if by_faults && around > run.warm_pages => {
            format!("{least} and {} mapped around it", run.volume(around))
        }
        None if by_faults => {
            format!("{least}, and what was mapped around its faults, which is not known here")
        }
        _ => least,
    }
}

/// What is to be said of waiting for data where half of it or more may have been for a processor: no disk was slow then.
pub(super) fn late(run: &Run) -> String {
    let w = &run.waits;
    let Some(ns) = [w.read_ns, for_data(run), w.exec_ns].into_iter().sum::<Option<u64>>() else {
        return String::new();
    };
    match without_a_processor(ns, run) {
        Some(late) if ns > 0 && late * 2 >= ns => {
            format!(" (up to {} % of this wait was for a processor, not for storage)", late * 100 / ns)
        }
        _ => String::new(),
    }
}

/// What page faults waited for that waited for no data.
pub(super) fn faults(run: &Run) -> &'static str {
    match waited_for(run) {
        For::Swap => "waiting for memory that had been swapped out",
        _ => Kind::Faults.spent(),
    }
}

/// Of two runs of which nothing is divided.
pub(super) fn undivided((_, a): (&Run, &Parts), (_, b): (&Run, &Parts), causes: &[Cause]) -> String {
    if !a.overlap() && !b.overlap() {
        return String::new();
    }
    let data = causes.iter().find(|c| c.id == Kind::Data.id()).and_then(|c| c.seconds);
    let seconds = data.filter(|s| s.abs() > 0.01).map_or_else(String::new, |s| {
        let way = if s > 0.0 { "less" } else { "more" };
        format!(" They waited {} {way} for data.", units::wall(s.abs()))
    });
    let threads = a.explained().zip(b.explained()).map_or_else(String::new, |(x, y)| {
        format!(
            " Threads worked at the same time, and the time of them all did not change as the wall time did ({} → {}): \
             the difference is not divided.",
            units::wall(x),
            units::wall(y)
        )
    });
    threads + &seconds
}

/// Where the time of one run went, behind how long it took; `said`: its causes.
pub(super) fn of_one(run: &Run, divided: Option<Divided>, said: &str) -> String {
    let Some(divided) = divided.filter(|_| !said.is_empty()) else { return ".".into() };
    if divided.of == Whole::WallTime {
        return format!(": {said}.");
    }
    // Not for its children, the last of them: what these did is here, too.
    let kinds = &run.waits.for_others()[..4];
    let beside: Vec<String> = kinds
        .iter()
        .filter_map(|(ns, what)| Some(((*ns)? as f64 / 1e9, what)))
        .filter(|(s, _)| *s >= super::LEAST * divided.then)
        .map(|(s, what)| format!("{} for {what}", units::wall(s)))
        .collect();
    let beside = match beside.as_slice() {
        [] => String::new(),
        all => format!(" They waited for each other or for others beside that: {}.", all.join(", ")),
    };
    format!(". Of the time of its parallel threads ({}): {said}.{beside}", units::wall(divided.then))
}
