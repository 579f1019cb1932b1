//! From the command line to something that counts.

use std::path::PathBuf;

use crate::columns::Column;
use crate::engines::Engines;
use crate::exit::Failure;
use crate::figures::Figure;
use crate::foreign;
use crate::foreign::Foreign;
use crate::only::Only;
use crate::pivot::By;
use crate::pivot::Choice;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::plan::Engine;
use crate::plan::Wants;
use crate::sample::Source as _;
use crate::session::Options;
use crate::top::cells;
use crate::top::cli::Args;
use crate::top::settings::Settings;
use crate::wait::Process;

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Name of the machine.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// What counts.
    pub engine: Engine,
    /// What a person must be told about it.
    pub notice: Option<String>,
    /// What `-p` and its like leave, in words; empty for everything.
    pub only: String,
    /// Figures that no row has on this kernel.
    pub unknown: Vec<Figure>,
    /// Files are counted.
    pub files: bool,
    /// Only some files count, so that rows have what is counted by file.
    pub by_file: bool,
    /// Read calls are timed.
    pub latency: bool,
    /// Bytes in a page.
    pub page_size: u64,
    /// The time zone of the clock.
    pub zone: jiff::tz::TimeZone,
    /// Where settings are kept, `None` if nowhere.
    pub config: Option<PathBuf>,
}

impl Scene {
    /// Whether this kernel gives any row a value in this column. What bcc shows is always there, be it as `-`.
    #[must_use]
    pub fn knows(&self, column: &Column) -> bool {
        column.figure().is_none_or(|figure| !self.unknown.contains(&figure))
    }

    /// Whether rows of this kind can have a value in this column.
    #[must_use]
    pub fn suits(&self, column: &Column, by: By) -> bool {
        cells::suits(column, if self.by_file { By::File } else { by }) && self.knows(column)
    }
}

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
    let of_rows = |f: &Figure| plan.knows(*f) && !plan.takes_over(*f);
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

/// Runs the command.
///
/// # Errors
/// When it could not do what it was asked; with the remedy.
pub fn cachetop(args: &Args) -> Result<(), Failure> {
    if let Some(what) = args.generate {
        return crate::run::print(&super::cli::generate(what), &mut std::io::stdout().lock());
    }
    // Mistakes are told before anything is loaded. The engine may still turn out to be another one.
    let (_, config) = settings(args, args.engine.unwrap_or(Engine::Exact))?;
    if let Some(warning) =
        config.as_deref().filter(|_| args.config.is_none()).and_then(super::config::unreadable)
    {
        eprintln!("cachetop: warning: {warning}");
    }
    if !args.explain && !args.plain() {
        super::terminal::check()?;
    }
    let process = args.pid.map(Process::open).transpose()?;
    if args.explain {
        let counting = count(args, config)?;
        return crate::run::print(
            &foreign::lines(&counting.engines.explain()),
            &mut std::io::stdout().lock(),
        );
    }
    if !args.plain() {
        return super::screen::run(args, process, config);
    }
    let mut counting = count(args, config)?;
    if let Some(notice) = &counting.scene.notice {
        eprintln!("cachetop: warning: {}", foreign::line(notice));
    }
    let (settings, _) = self::settings(args, counting.scene.engine)?;
    let mut wait = crate::wait::System::new(process).map_err(anyhow::Error::from)?;
    super::batch::run(
        args,
        &settings,
        &counting.scene,
        super::batch::World {
            source: &mut counting.engines,
            pivot: counting.pivot,
            wait: &mut wait,
            out: &mut std::io::stdout().lock(),
            err: &mut std::io::stderr(),
        },
    )
}
