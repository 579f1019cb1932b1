//! `cachestat` from its options to its last interval.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::engines::Engines;
use crate::exit::Failure;
use crate::only::Only;
use crate::options::Format;
use crate::options::replayable;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::privilege::Role;
use crate::record::live::Noting;
use crate::record::live::Recording;
use crate::record::names::Told;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::record::writer::Writer;
use crate::run;
use crate::run::Options;
use crate::run::World;
use crate::run::export;
use crate::run::export::Export;
use crate::sample::Source as _;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::output;
use crate::view;
use crate::view::Surroundings;
use crate::wait;

/// Counts, and shows interval by interval.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn cachestat(options: Options) -> Result<(), Failure> {
    match options.replay.clone() {
        Some((path, part)) => replay(options, &path, &part),
        None => live(options),
    }
}

fn live(mut options: Options) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let processes = options.chosen.watch()?;
    if let Some(notice) = options.chosen.notice() {
        output::say(&format!("cachestat: notice: {notice}"));
    }
    let mut names = System::new();
    let (mut filter, mut only) = options.chosen.look_up(&names, processes.seen)?;
    if let Some(path) = &options.record {
        // Everything is recorded, whatever is shown of it.
        (only, filter.decided) = (Only::default(), false);
        if !options.counting.explain {
            Writer::check(path)?;
        }
    }
    let mut wants = options.wants();
    wants.files |= filter.files() || options.by.is_some_and(By::files);
    wants.blame = options.by == Some(By::Evictor);
    let mut wait = wait::System::new(processes).map_err(anyhow::Error::from)?;
    let open = || Engines::open(&options.counting.session(wants, only), options.counting.engine);
    let Some(mut engines) = wait.unless_asked(open)? else { return Ok(()) };
    if let Some(notice) = engines.notice() {
        output::say(&format!("cachestat: warning: {}", foreign::line(notice)));
    }
    // Which columns there are depends on what counts after all.
    options.counting.engine = Some(engines.engine());
    if options.counting.explain {
        let json = options.format == Format::Json;
        return output::print(&engines.explained(Role::Count, json), out);
    }
    for (title, why) in options.untold(engines.plan()) {
        output::say(&format!("cachestat: warning: {title} is not known here: {why}"));
    }
    // What was recorded there before is replaced only by something that counts.
    let mut writer =
        options.record.as_deref().map(|path| Writer::file(path, options.interval)).transpose()?;
    let mut view = view::new(&options, Surroundings::here());
    Role::Count.take(&[])?;
    let (by, top) = (options.by, options.top);
    let Some(writer) = &mut writer else {
        let mut pivot = Pivot { by, top, filter, names: Box::new(names) };
        let world =
            World { source: &mut engines, pivot: &mut pivot, wait: &mut wait, out, err: &mut io::stderr() };
        return run::run(&options, view.as_mut(), world);
    };
    let (told, sink) = Told::new();
    let (mut source, wake) = Recording::new(&mut engines, &mut names, writer, sink);
    let mut wait = Noting { wait: &mut wait, wake };
    let mut pivot = Pivot { by, top, filter, names: Box::new(told) };
    let world =
        World { source: &mut source, pivot: &mut pivot, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(&options, view.as_mut(), world)
}

fn replay(mut options: Options, path: &Path, part: &Part) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    let say = |text: &str| output::say(&format!("cachestat: notice: {}", foreign::line(text)));
    replayable(path)?;
    let mut opened = Replay::open(path, part, Box::new(say))?;
    // Whatever hinders it is told before anything is read, and before privileges are given back.
    let export = options.export.clone();
    let tables =
        export.as_deref().map(|at| Export::new(at, options.by.is_some(), opened.latency)).transpose()?;
    Role::Replay.take(&export.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    say(&format!("replaying {}, recorded from {} on", Foreign::from(path), view::utc(opened.begins)));
    if let Some(uneven) = part.every.and_then(|every| uneven(every, opened.session.interval)) {
        say(&uneven);
    }
    options.interval = opened.interval;
    options.counting.engine = Some(opened.engine);
    let here = Surroundings { page_size: opened.session.page_size, ..Surroundings::here() };
    let mut view = view::new(&options, here);
    let filter = options.chosen.recorded();
    let mut pivot = Pivot { by: options.by, top: options.top, filter, names: Box::new(opened.names) };
    if let Some((tables, at)) = tables.zip(export) {
        let written = tables.write(&mut opened.replay, &mut opened.clock, &mut pivot);
        say(&export::said(written.map_err(|e| export::failed(&at, &e))?, &at));
        return Ok(());
    }
    let world = World {
        source: &mut opened.replay,
        pivot: &mut pivot,
        wait: &mut opened.clock,
        out,
        err: &mut io::stderr(),
    };
    run::run(&options, view.as_mut(), world)
}

/// Why intervals of a replay are not as long as was asked for, where they cannot be: those that were recorded (nanoseconds) can
/// be put together, and not be divided.
fn uneven(every: Duration, recorded: u64) -> Option<String> {
    let recorded = Duration::from_nanos(recorded.max(1));
    let told = |time: Duration| format!("{} s", time.as_secs_f64());
    if every < recorded {
        return Some(format!(
            "'--every {}' is shorter than the {} that were recorded: these are shown",
            told(every),
            told(recorded)
        ));
    }
    (every.as_nanos() % recorded.as_nanos() != 0).then(|| {
        let (every, recorded) = (told(every), told(recorded));
        format!("'--every {every}' is no multiple of the {recorded} that were recorded: intervals are of different lengths")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_cannot_be_as_long_as_was_asked_for_are_told() {
        let of = |every, recorded: u64| {
            uneven(Duration::from_millis(every), recorded * 1_000_000).unwrap_or_default()
        };
        assert!(of(300, 1000).starts_with("'--every 0.3 s' is shorter than the 1 s"), "{}", of(300, 1000));
        assert!(of(1500, 1000).contains("intervals are of different lengths"), "{}", of(1500, 1000));
        assert_eq!(of(1000, 1000) + &of(60_000, 1000) + &of(5000, 250), "");
    }
}
