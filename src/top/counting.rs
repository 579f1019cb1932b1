//! From options to something that counts, and to the settings in force.

use std::path::PathBuf;

use crate::engines::Engines;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::pivot::By;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Engine;
use crate::plan::Wants;
use crate::sample::Source as _;
use crate::text::foreign::Foreign;
use crate::top::options::Config;
use crate::top::options::Options;
use crate::top::options::Output;
use crate::top::scene::Scene;
use crate::top::settings::Settings;

/// What counts, and what is made of it.
pub struct Counting {
    /// Where samples come from.
    pub engines: Engines,
    /// Rows, filters, names.
    pub pivot: Pivot,
    /// What does not change.
    pub scene: Scene,
}

/// Loads and attaches what counts. Takes its time. `seen`: when the processes that are asked for were alive.
///
/// # Errors
/// When it cannot; with the remedy where there is one.
pub fn count(options: &Options, config: Option<PathBuf>, seen: u64) -> Result<Counting, Failure> {
    let names = System::new();
    let (filter, only) = options.chosen.look_up(&names, seen)?;
    let pivot = Pivot { by: None, top: usize::MAX, filter, names: Box::new(names) };
    let classic = options.counting.engine == Some(Engine::Classic);
    let files = !options.no_files && !classic;
    let shown = options.changes.columns.iter().flatten().any(|c| c.id == "stall_s");
    let latency = options.latency || options.output == Output::Json || shown;
    // Programs of their own, at each page that comes and goes: for who begins with such rows.
    let blame = !classic && settings(options, Engine::Exact)?.0.by == By::Evictor;
    let wants = Wants { latency, files, around: true, buffers: true, blame, ..Wants::default() };
    let session = options.counting.session(wants, only);
    let engines = Engines::open(&session, options.counting.engine)?;
    let text =
        |name: &str| crate::kernel::name(name).map_or_else(|| "-".into(), |n| Foreign::from(&*n).to_string());
    let engine = engines.engine();
    let plan = engines.plan();
    let of_rows = |f: &Figure| plan.knows(*f) && !plan.takes_over(*f);
    let scene = Scene {
        unknown: Figure::ALL.iter().filter(|f| !of_rows(f)).copied().collect(),
        host: text("hostname"),
        kernel: text("osrelease"),
        engine,
        notice: engines.notice().map(String::from),
        only: options.chosen.brief(),
        told_of_ends: crate::wait::sees_all_processes(),
        files: files && engine != Engine::Classic,
        evictors: blame && engine == Engine::Exact,
        by_file: options.chosen.by_file(),
        latency: latency && engine != Engine::Classic,
        page_size: rustix::param::page_size() as u64,
        zone: crate::text::zone::local(),
        config,
        replay: None,
    };
    Ok(Counting { engines, pivot, scene })
}

/// The settings in force: those kept, and over them those chosen for this time.
///
/// # Errors
/// When the file has mistakes, or cannot be read though it was named.
pub fn settings(options: &Options, engine: Engine) -> Result<(Settings, Option<PathBuf>), Failure> {
    let mut settings = Settings::for_engine(engine);
    let path = match &options.config {
        Config::Nowhere => None,
        Config::File(path) => Some(path.clone()),
        Config::Usual => super::config::path(),
    };
    if let Some(path) = &path {
        super::config::read(path, options.config != Config::Usual, &mut settings)?;
    }
    options.changes.apply(&mut settings);
    if engine != Engine::Exact {
        // Kept for another engine: rows other than processes have no classic figures.
        settings.by = By::Process;
        settings.threads = false;
    }
    if options.chosen.by_file() {
        settings.threads = false;
    }
    if options.no_files && settings.by.files() || options.chosen.by_file() && settings.by == By::Thread {
        settings.by = By::Process;
    }
    if settings.by == By::Evictor && (options.replay.is_some() || options.chosen.by_file()) {
        // Neither of recordings nor by file is known who pushes pages out.
        settings.by = By::Process;
    }
    Ok((settings, path))
}
