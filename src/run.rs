//! The loop of `cachestat`: samples on the beat of a clock, intervals to a view, until something ends it.
//!
//! The outside world comes in through [`World`], so that tests run the whole of it on fakes.

use std::io;
use std::io::Write;
use std::time::Duration;
use std::time::Instant;

use crate::cli::Args;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::figures::Figures;
use crate::loss;
use crate::model::Interval;
use crate::pivot::Pivot;
use crate::sample::Source;
use crate::view::View;
use crate::wait::Wait;
use crate::wait::Wake;

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

/// When intervals end: the k-th at start + k × length, however long anything took.
#[derive(Debug)]
pub(crate) struct Beat {
    start: Instant,
    length: Duration,
    k: u64,
}

impl Beat {
    pub(crate) const fn new(start: Instant, length: Duration) -> Self {
        Self { start, length, k: 1 }
    }

    fn at(&self, k: u64) -> Instant {
        let nanos = self.length.as_nanos().saturating_mul(k.into());
        let offset = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // A beat beyond the end of the clock, centuries from now, is never waited for.
        self.start.checked_add(offset).unwrap_or(self.start)
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.at(self.k)
    }

    /// Goes on to the next beat. Beats that have passed already are left out, and so is the one after them
    /// where it would make an interval of less than half the length.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.k += 1;
        if self.deadline() <= now {
            let passed = now.duration_since(self.start).as_nanos() / self.length.as_nanos().max(1);
            self.k = u64::try_from(passed).unwrap_or(u64::MAX - 1) + 1;
            if self.deadline().saturating_duration_since(now) < self.length / 2 {
                self.k += 1;
            }
        }
    }
}

/// Runs until COUNT, a signal, the end of the process watched, or a closed pipe.
///
/// # Errors
/// When samples cannot be read or the output cannot be written.
pub fn run(args: &Args, view: &mut dyn View, world: World<'_>) -> Result<(), Failure> {
    match intervals(args, view, world) {
        Ok(()) | Err(End::Closed) => Ok(()),
        Err(End::Failed(failure)) => Err(failure),
    }
}

/// Prints a text in one go; a closed pipe is no error.
///
/// # Errors
/// When the output cannot be written.
pub fn print(text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    match flush(&mut text.to_owned(), out) {
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

fn intervals(args: &Args, view: &mut dyn View, world: World<'_>) -> Result<(), End> {
    let World { source, pivot, wait, out, err } = world;
    let plan = source.plan().clone();
    let mut before = source.sample()?;
    let mut beat = Beat::new(wait.now(), args.interval);
    let mut run: Option<Interval> = None;
    let mut text = String::new();
    view.begin(&mut text);
    flush(&mut text, out)?;
    for done in 1.. {
        let wake = wait.until(beat.deadline())?;
        let now = source.sample()?;
        let interval = pivot.interval(&before, &now, &plan);
        before = now;
        warn(args, &interval, wake, run.as_ref(), err);
        let total = sum(run.take(), &interval);
        if wake == Wake::Interrupt {
            view.interrupted(&mut text);
        }
        view.interval(&interval, &mut text);
        if wake == Wake::Interrupt {
            view.total(&total, &mut text);
        }
        flush(&mut text, out)?;
        if let (Wake::Ended, Some(pid)) = (wake, args.pid) {
            let _ = writeln!(err, "cachestat: process {pid} has ended");
        }
        if wake != Wake::Deadline || args.count == Some(done) {
            conclude(&total, &interval, err);
            break;
        }
        run = Some(total);
        beat.advance(wait.now());
    }
    Ok(())
}

/// Writes what has gathered in one go, so that no reader sees half an interval.
fn flush(text: &mut String, out: &mut dyn Write) -> Result<(), End> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    text.clear();
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => End::Closed,
        _ => End::Failed(Failure::failed(format!("cannot write the output: {error}"))),
    })
}

/// The run so far and one more interval. Rows are not summed: there is no bound to how many processes a run
/// may see.
fn sum(run: Option<Interval>, interval: &Interval) -> Interval {
    let mut sum = Interval { rows: Vec::new(), groups: 0, ..interval.clone() };
    if let Some(run) = run {
        sum.seconds += run.seconds;
        sum.total = add(&run.total, &interval.total);
        sum.classic = run.classic.zip(interval.classic).map(|(a, b)| a.and(&b));
        if let (Some(sum), Some(run)) = (&mut sum.histograms, &run.histograms) {
            sum.add(run);
        }
        for (why, n) in run.lost.by_reason {
            match sum.lost.by_reason.iter_mut().find(|(w, _)| *w == why) {
                Some((_, m)) => *m += n,
                None => sum.lost.by_reason.push((why, n)),
            }
        }
    }
    sum
}

fn add(a: &Figures, b: &Figures) -> Figures {
    let mut out = Figures::unknown();
    for figure in Figure::ALL {
        out.set(*figure, a.get(*figure).zip(b.get(*figure)).map(|(a, b)| a + b));
    }
    out
}

/// Says on standard error what a reader of the figures must know: the first loss, and an interval that was
/// much longer than asked for.
fn warn(args: &Args, interval: &Interval, wake: Wake, run: Option<&Interval>, err: &mut dyn Write) {
    if interval.lost.total() > 0 && run.is_none_or(|run| run.lost.total() == 0) {
        let _ = writeln!(err, "cachestat: warning: {}", loss::told(&interval.lost));
        let options = loss::options(&interval.lost);
        if !options.is_empty() {
            let filtered = if args.filters() { "; what is chosen is not known without" } else { "" };
            let _ = writeln!(err, "remedy: more room with {}{filtered}", options.join(", "));
        }
    }
    if wake == Wake::Deadline && interval.seconds > 1.5 * args.interval.as_secs_f64() {
        let (took, asked) = (interval.seconds, args.interval.as_secs_f64());
        let _ = writeln!(err, "cachestat: warning: this interval took {took:.3} s instead of {asked} s");
    }
}

/// At the end, what was lost over the run, unless it was said just now.
fn conclude(total: &Interval, last: &Interval, err: &mut dyn Write) {
    if total.lost.total() > last.lost.total() {
        let _ = writeln!(err, "cachestat: warning: over the whole run, {}", loss::told(&total.lost));
    }
}

#[cfg(test)]
mod tests;
