//! From options to something that counts, and to the settings in force.

use std::path::PathBuf;

use crate::engines::Engines;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::foreign::Foreign;
use crate::only::Only;
use crate::pivot::By;
use crate::pivot::Choice;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Brackets;
use crate::plan::Engine;
use crate::plan::Wants;
use crate::sample::Source as _;
use crate::session::Options;
use crate::top::cli::Args;
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

/// What the options choose, looked up while it is there.
fn pivot(args: &Args) -> Result<(Pivot, Only), Failure> {
    let names = System::new();
    let (comm, cgroup) = (args.comm.as_deref(), args.cgroup.as_deref());
    let (file, mount) = (args.file.as_deref(), args.mount.as_deref());
    let (filter, only) = Choice { pid: args.pid, comm, cgroup, file, mount }.look_up(&names)?;
    Ok((Pivot { by: None, top: usize::MAX, filter, names: Box::new(names) }, only))
}

fn only(args: &Args) -> String {
    let mut parts = Vec::new();
    parts.extend(args.pid.map(|p| format!("process {p}")));
    parts.extend(args.comm.as_deref().map(|c| format!("command {}", Foreign::from(c))));
    parts.extend(args.cgroup.as_deref().map(|c| format!("cgroup {}", Foreign::from(c))));
    parts.extend(args.file.as_deref().map(|p| format!("file {}", Foreign::from(p))));
    parts.extend(args.mount.as_deref().map(|p| format!("mount of {}", Foreign::from(p))));
    parts.join(", ")
}

/// Loads and attaches what counts. Takes its time.
///
/// # Errors
/// When it cannot; with the remedy where there is one.
pub fn count(args: &Args, config: Option<PathBuf>) -> Result<Counting, Failure> {
    let (pivot, asked) = pivot(args)?;
    let classic = args.engine == Some(Engine::Classic);
    let files = !args.no_files && !classic;
    let shown = args.columns.iter().flat_map(|l| &l.0).any(|c| c.id == "stall_s");
    let mut options = Options {
        include_self: args.include_self,
        only: asked,
        wants: Wants { latency: args.latency || args.json || shown, files, around: true, ..Wants::default() },
        refuse: args.refuse.clone(),
        files: args.file_table,
        ..Options::default()
    };
    options.table = args.table_size.unwrap_or(options.table);
    let engines = Engines::open(&options, args.engine)
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    let text = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        if text.trim().is_empty() { "-".into() } else { Foreign::from(text.trim()).to_string() }
    };
    let engine = engines.engine();
    let plan = engines.plan();
    let of_rows =
        |f: &Figure| plan.knows(*f) && !(*f == Figure::Refaulted && plan.brackets == Brackets::Tracepoints);
    let scene = Scene {
        unknown: Figure::ALL.iter().filter(|f| !of_rows(f)).copied().collect(),
        host: text("hostname"),
        kernel: text("osrelease"),
        engine,
        notice: engines.notice().map(String::from),
        only: only(args),
        files: files && engine != Engine::Classic,
        by_file: args.by_file(),
        latency: options.wants.latency && engine != Engine::Classic,
        page_size: rustix::param::page_size() as u64,
        zone: jiff::tz::TimeZone::system(),
        config,
    };
    Ok(Counting { engines, pivot, scene })
}

/// The settings in force: those kept, and over them those asked for.
///
/// # Errors
/// When the file has mistakes, or cannot be read though it was asked for.
pub fn settings(args: &Args, engine: Engine) -> Result<(Settings, Option<PathBuf>), Failure> {
    let mut settings = Settings::of(engine);
    let path = match (&args.config, args.no_config) {
        (_, true) => None,
        (Some(path), _) => Some(path.clone()),
        (None, _) => super::config::path(),
    };
    if let Some(path) = &path {
        super::config::read(path, args.config.is_some(), &mut settings)?;
    }
    args.apply(&mut settings);
    if engine != Engine::Exact {
        // Kept for another engine: rows other than processes have no classic figures.
        settings.by = By::Process;
        settings.threads = false;
    }
    if args.by_file() {
        settings.threads = false;
    }
    if args.no_files && settings.by.files() || args.by_file() && settings.by == By::Thread {
        settings.by = By::Process;
    }
    Ok((settings, path))
}
