//! The loop of `cachestat`: samples on the beat of a clock, intervals to a view, until something ends it.
//!
//! The outside world comes in through [`World`], so that tests run the whole of it on fakes.

use std::io;
use std::io::Write;

use crate::cli::Args;
use crate::exit::Failure;
use crate::live::Beat;
use crate::live::Live;
use crate::live::Total;
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
    let mut live = Live::new(source)?;
    let mut beat = Beat::new(wait.now(), args.interval);
    let mut run = Total::default();
    let mut text = String::new();
    view.begin(&mut text);
    flush(&mut text, out)?;
    for done in 1.. {
        let wake = wait.until(beat.deadline())?;
        live.tick()?;
        let interval = live.interval(pivot);
        warn(args, &interval, wake, run.so_far(), err);
        let total = run.add(&interval);
        if wake == Wake::Interrupt {
            view.interrupted(&mut text);
        }
        view.interval(&interval, &mut text);
        if wake == Wake::Interrupt {
            view.total(total, &mut text);
        }
        flush(&mut text, out)?;
        if let (Wake::Ended, Some(pid)) = (wake, args.pid) {
            let _ = writeln!(err, "cachestat: process {pid} has ended");
        }
        if wake != Wake::Deadline || args.count == Some(done) {
            conclude(total, &interval, err);
            break;
        }
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
