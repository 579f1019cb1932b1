//! The loop of `cachestat`: samples on the beat of a clock, intervals to a view, until something ends it.
//!
//! The outside world comes in through [`World`], so that tests run the whole of it on fakes.

pub mod export;
pub mod options;
pub mod start;

use std::io::Write;

use crate::exit::Failure;
use crate::figures::Figure;
use crate::live::Beat;
use crate::live::Live;
use crate::live::Rows;
use crate::live::Total;
use crate::live::keeper;
use crate::loss;
use crate::model::Interval;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::sample::Source;
use crate::text::output;
use crate::view::View;
use crate::wait::Wait;
use crate::wait::Wake;

pub use options::Options;
pub use options::Set;

/// All that the loop touches.
pub struct World<'a> {
    /// Where samples come from.
    pub source: &'a mut dyn Source,
    /// What rows and totals are made of.
    pub pivot: &'a mut Pivot,
    /// The clock, signals and the process watched.
    pub wait: &'a mut dyn Wait,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

/// Runs until COUNT, a signal, the end of the process watched, or a closed pipe.
///
/// # Errors
/// When samples cannot be read or the output cannot be written.
pub fn run(options: &Options, view: &mut dyn View, world: World<'_>) -> Result<(), Failure> {
    match intervals(options, view, world) {
        Ok(()) | Err(End::Closed) => Ok(()),
        Err(End::Failed(failure)) => Err(failure),
    }
}

/// Why the loop ended early.
enum End {
    /// Nobody reads the output any more.
    Closed,
    Failed(Failure),
}

impl<E: Into<anyhow::Error>> From<E> for End {
    fn from(error: E) -> Self {
        End::Failed(Failure::from(error.into()))
    }
}

fn intervals(options: &Options, view: &mut dyn View, world: World<'_>) -> Result<(), End> {
    let World { source, pivot, wait, out, err } = world;
    let mut live = Live::new(source)?;
    let mut beat = Beat::new(wait.now(), options.interval);
    let mut run = Total::default();
    let mut rows = Rows::new(live.now(), pivot);
    // Of what was recorded nobody can be asked.
    let alive = if options.replay.is_some() { |_| true } else { keeper::alive };
    let holds = options.by == Some(By::Cgroup) && options.columns().iter().any(|c| c.of_cgroups());
    let mut found = options.replay.as_ref().filter(|_| options.chosen.any()).map(|_| Found::default());
    let mut text = String::new();
    view.begin(&mut text);
    flush(&mut text, out)?;
    for done in 1.. {
        let wake = crate::live::wait(wait, live.source(), beat.deadline())?;
        if wake == Wake::Over {
            break;
        }
        live.tick()?;
        let mut interval = live.interval(pivot);
        if holds {
            pivot.hold(&mut interval.rows);
        }
        warn(options, &interval, wake, run.so_far(), err);
        if let Some(found) = &mut found {
            found.see(&interval);
        }
        rows.add(live.now(), pivot, &alive);
        let total = run.add(&interval);
        if wake == Wake::Interrupt {
            view.interrupted(&mut text);
        }
        view.interval(&interval, &mut text);
        if wake == Wake::Interrupt {
            let mut total = rows.below(total, pivot, live.plan());
            if holds {
                pivot.hold(&mut total.rows);
            }
            view.total(&total, &mut text);
        }
        flush(&mut text, out)?;
        if let Some(ended) = options.chosen.ended().filter(|_| wake == Wake::Ended) {
            let _ = writeln!(err, "cachestat: {ended}");
        }
        if wake != Wake::Deadline || options.count == Some(done) {
            conclude(total, &interval, err);
            break;
        }
        beat.advance(wait.now());
    }
    if found.is_some_and(|found| found.nothing()) {
        let _ = writeln!(err, "cachestat: notice: {NOTHING_CHOSEN}");
    }
    Ok(())
}

/// Nobody can look up whether what is chosen of a recording was there: who misspells a name is told that nothing was found.
const NOTHING_CHOSEN: &str = "nothing of what is chosen is in what was shown of the recording; without that, '--by process' (comm, \
     cgroup, file, mount) shows what there is";

/// What was found of what is chosen.
#[derive(Debug, Default)]
struct Found {
    intervals: usize,
    /// Something is there, or may be: rows were lost, or another engine counted.
    perhaps: bool,
}

impl Found {
    fn see(&mut self, interval: &Interval) {
        self.intervals += 1;
        let counted = Figure::ALL.iter().any(|figure| interval.total.get(*figure).unwrap_or(0) > 0);
        self.perhaps |= counted || interval.lost.total() > 0 || interval.classic.is_some();
    }

    fn nothing(&self) -> bool {
        self.intervals > 0 && !self.perhaps
    }
}

/// Writes what has gathered in one go, so that no reader sees half an interval.
fn flush(text: &mut String, out: &mut dyn Write) -> Result<(), End> {
    let written = output::offer(text.as_bytes(), out);
    text.clear();
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(End::Closed),
        Err(error) => Err(End::Failed(output::failure(&error))),
    }
}

/// Says on standard error what a reader of the figures must know: the first loss, and an interval that was
/// much longer than requested.
fn warn(options: &Options, interval: &Interval, wake: Wake, run: Option<&Interval>, err: &mut dyn Write) {
    if interval.lost.total() > 0 && run.is_none_or(|run| run.lost.total() == 0) {
        let _ = writeln!(err, "cachestat: warning: {}", loss::sentence(&interval.lost));
        let room = loss::options(&interval.lost);
        if !room.is_empty() {
            let filtered = if options.chosen.any() { "; what is chosen is not known without" } else { "" };
            let _ = writeln!(err, "remedy: more room with {}{filtered}", room.join(", "));
        }
    }
    // What was recorded cannot be divided, and nothing was late.
    let live = options.replay.is_none();
    if live && wake == Wake::Deadline && interval.seconds > 1.5 * options.interval.as_secs_f64() {
        let (took, requested) = (interval.seconds, options.interval.as_secs_f64());
        let _ = writeln!(err, "cachestat: warning: this interval took {took:.3} s instead of {requested} s");
    }
}

/// At the end, what was lost over the run, unless it was said just now.
fn conclude(total: &Interval, last: &Interval, err: &mut dyn Write) {
    if let Some(text) = loss::over_all(&total.lost, last.lost.total()) {
        let _ = writeln!(err, "cachestat: {text}");
    }
}

#[cfg(test)]
mod tests;
