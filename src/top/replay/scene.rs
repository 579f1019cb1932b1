//! A recording instead of something that counts, and a recording as text.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::Failure;
use crate::figures::Figure;
use crate::pivot::By;
use crate::pivot::Filter;
use crate::pivot::Pivot;
use crate::plan::Engine;
use crate::record::names::Told;
use crate::record::replay::Opened;
use crate::record::replay::Part;
use crate::record::replay::Replay;
use crate::sample::Source as _;
use crate::text::foreign;
use crate::text::foreign::Foreign;
use crate::text::output;
use crate::top::counting::settings;
use crate::top::options::Options;
use crate::top::scene::Replayed;
use crate::top::scene::Scene;
use crate::top::settings::Settings;

/// What the scene of a recording is: its machine, not this one.
pub(super) fn scene(
    options: &Options,
    opened: &Opened,
    config: Option<PathBuf>,
) -> Result<(Scene, Settings), Failure> {
    if opened.engine != Engine::Exact && options.changes.by.is_some_and(|by| by != By::Process) {
        return Err(Failure::usage(
            "this was recorded with the classic engine, which counts by process: 'cachestat --replay' has other rows",
        ));
    }
    let (mut in_force, _) = settings(options, opened.engine)?;
    let kept = in_force.interval;
    let recorded = Duration::from_nanos(opened.session.interval.max(1));
    // What was recorded cannot be taken apart.
    in_force.interval = opened.interval.max(recorded);
    let by_file = options.chosen.by_file();
    if !opened.files && (by_file || options.changes.by.is_some_and(By::files)) {
        return Err(Failure::usage("files were not counted when this was recorded"));
    }
    if !opened.files && in_force.by.files() {
        in_force.by = By::Process;
    }
    let plan = opened.replay.plan();
    let of_rows = |f: &Figure| plan.knows(*f) && !plan.takes_over(*f);
    let told =
        |name: &Option<String>| name.as_deref().map_or_else(|| "-".into(), |n| Foreign::from(n).to_string());
    let scene = Scene {
        evictors: false,
        unknown: Figure::ALL.iter().filter(|f| !of_rows(f)).copied().collect(),
        host: told(&opened.session.host),
        kernel: told(&opened.session.kernel),
        engine: opened.engine,
        notice: None,
        only: options.chosen.brief(),
        // Who has ended when was not recorded, and this machine knows nothing of it.
        told_of_ends: false,
        files: opened.files && opened.engine != Engine::Classic,
        by_file,
        latency: opened.latency,
        page_size: opened.session.page_size,
        zone: crate::text::zone::local(),
        config,
        replay: Some(Replayed { recorded, kept }),
    };
    Ok((scene, in_force))
}

pub(super) fn pivot(filter: Filter, names: Told) -> Pivot {
    Pivot { by: None, top: usize::MAX, filter, names: Box::new(names) }
}

/// Writes a recording as text or JSON.
///
/// # Errors
/// When it cannot be read, or the output cannot be written.
pub fn batch(options: &Options, config: Option<PathBuf>, out: &mut dyn Write) -> Result<(), Failure> {
    let Some((path, from)) = &options.replay else { return Ok(()) };
    let say = |text: &str| output::say(&format!("cachetop: notice: {}", foreign::line(text)));
    let part = Part { from: from.clone(), to: None, every: options.changes.interval, onwards: false };
    let mut opened = Replay::open(path, &part, Box::new(say))?;
    say(&format!(
        "replaying {}, recorded from {} on",
        Foreign::from(path.as_path()),
        crate::view::utc(opened.begins)
    ));
    let (scene, settings) = scene(options, &opened, config)?;
    crate::top::batch::run(
        options,
        &settings,
        &scene,
        crate::top::batch::World {
            source: &mut opened.replay,
            pivot: pivot(options.chosen.recorded(), opened.names),
            wait: &mut opened.clock,
            out,
            err: &mut std::io::stderr(),
        },
    )
}
