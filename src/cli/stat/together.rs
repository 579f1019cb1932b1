//! What options of `cachestat` do not go together with others. Of several mistakes the first is told.

use std::path::Path;

use super::Args;
use super::conflict;
use super::working_set;
use crate::pivot::By;
use crate::plan::Engine;
use crate::report;

/// What is wrong with them.
///
/// # Errors
/// The message for whoever requested it.
pub(super) fn check(args: &Args) -> Result<(), String> {
    watched(args)?;
    counted(args)?;
    what_if(args)?;
    blame(args)?;
    evictors(args)?;
    if args.working_set.is_some() {
        working_set::check(args)?;
    }
    recordings(args)?;
    args.common.how.takes(&args.filters)?;
    if args.bcc && args.common.how.engine == Some(Engine::Both) {
        return conflict("'--bcc' cannot be used with '--engine both': its layout has room for one engine");
    }
    Ok(())
}

/// A command or a process, and runs of it.
fn watched(args: &Args) -> Result<(), String> {
    if let Some((option, text)) = args.watched.stray(args.what_if.flatten().is_some()) {
        return Err(format!("'{option}' {text}"));
    }
    if let Some(text) = args.watched.bench.conflict(args.watched.repeat, args.watched.cold) {
        return conflict(&text);
    }
    if let Some(text) = args.watched.no_such_run() {
        return Err(text);
    }
    if args.watched.tried.is_some() && args.watched.bench.cold_each == Some(report::Cold::Slab) {
        return conflict("'--try' compares runs that begin without cached pages: not '--cold-each slab'");
    }
    Ok(())
}

/// What is counted, and by which engine.
fn counted(args: &Args) -> Result<(), String> {
    let files = args.filters.by_file();
    if files && args.by == Some(By::Thread) {
        return conflict(
            "files are counted by process: '--by thread' cannot be used with '--file' or '--mount'",
        );
    }
    if args.common.how.classic() && args.by.is_some_and(|by| by != By::Process) {
        return conflict("the classic engine counts by process: take '--by process' or '--engine exact'");
    }
    if args.what_if.is_some() && args.common.how.classic() {
        return conflict("'--what-if' needs to know which pages are used: take '--engine exact'");
    }
    if args.watched.time.is_some() && args.filters.chosen().pids().len() > 1 {
        return conflict("'--for' explains one process and what it starts: take one '-p'");
    }
    if args.what_if.flatten().is_some() && args.filters.cgroup.len() > 1 {
        return conflict(
            "'--what-if' tells of one cache, whose size is that of a cgroup: take one '--cgroup'",
        );
    }
    Ok(())
}

/// How long `--what-if` watches, and what it has no room for.
fn what_if(args: &Args) -> Result<(), String> {
    match (args.what_if, args.watched.report()) {
        (Some(None), false) => {
            return conflict(
                "'--what-if' needs to know how long to watch ('--what-if 60'), or a command ('-- COMMAND')",
            );
        }
        (Some(Some(_)), true) => {
            return conflict(
                "a report is about the whole run: '--what-if' takes no SECONDS with '-- COMMAND' or '--for'",
            );
        }
        (Some(Some(_)), false) if args.unit.is_some() => {
            return conflict("'--what-if SECONDS' cannot be used with '--unit'");
        }
        (Some(Some(_)), false) if args.watched.html.as_deref() == Some(Path::new("-")) => {
            return conflict(
                "'--what-if SECONDS' has its table on standard output: name a file for '--html'",
            );
        }
        (Some(None), true) if args.so_far.is_some() => {
            return conflict("a report is about the whole run: '--so-far' is for '--what-if SECONDS'");
        }
        _ => {}
    }
    Ok(())
}

/// The same of `--blame`.
fn blame(args: &Args) -> Result<(), String> {
    if args.blame.is_some() && args.common.how.classic() {
        return conflict("'--blame' is counted by the exact engine: take '--engine exact'");
    }
    let report = args.watched.report();
    match args.blame {
        Some(None) if !report => {
            return Err(
                "'--blame' needs to know how long: a number of seconds, or a command ('-- COMMAND')".into()
            );
        }
        Some(Some(_)) if report => {
            return conflict("'--blame' of a command or of '--for' lasts as long as that: it takes no time");
        }
        Some(Some(_)) if args.unit.is_some() => {
            return conflict("'--blame SECONDS' tells of bytes: it takes no '--unit'");
        }
        _ => {}
    }
    Ok(())
}

/// What `--by evictor` does not know.
fn evictors(args: &Args) -> Result<(), String> {
    let recordings = &args.recordings;
    if args.by == Some(By::Evictor) {
        if recordings.record.is_some() || recordings.replay.is_some() {
            return conflict("'--by evictor' tells of now: it cannot be used with '--record' or '--replay'");
        }
        if args.filters.by_file() {
            return conflict(
                "'--by evictor' knows no files: it cannot be used with '--file' or '--mount' ('--blame' knows them)",
            );
        }
    }
    Ok(())
}

/// What is written down or read back, and what tells of now.
fn recordings(args: &Args) -> Result<(), String> {
    args.recordings.check()?;
    let recordings = &args.recordings;
    if args.what_if.is_some() && (recordings.record.is_some() || recordings.replay.is_some()) {
        return conflict("'--what-if' tells of now: it cannot be used with '--record' or '--replay'");
    }
    if args.so_far.zip(args.what_if.flatten()).is_some_and(|(so_far, time)| so_far > time) {
        return conflict("'--so-far' is longer than '--what-if': nothing would be said before the end");
    }
    // clap lets it pass beside what excludes '--what-if'.
    if args.so_far.is_some() && args.what_if.is_none() {
        return conflict("'--so-far' is of '--what-if': it cannot be used without");
    }
    if args.blame.is_some() && (recordings.record.is_some() || recordings.replay.is_some()) {
        return conflict("'--blame' tells of now: it cannot be used with '--record' or '--replay'");
    }
    Ok(())
}
