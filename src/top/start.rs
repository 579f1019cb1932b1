//! The command from its start to its end.

use crate::exit::Failure;
use crate::options::replayable;
use crate::plan::Engine;
use crate::privilege::Role;
use crate::text::foreign;
use crate::text::output;
use crate::top::counting::count;
use crate::top::counting::settings;
use crate::top::options::Config;
use crate::top::options::Options;
use crate::top::options::Output;
use crate::wait::Processes;

/// Who may not read the settings because nothing is allowed is told that, and not to correct the file.
fn reason(options: &Options, failure: Failure) -> Failure {
    let Config::File(path) = &options.config else { return failure };
    let refused = crate::text::infile::open(path)
        .err()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied);
    match crate::kernel::privilege() {
        Err(obstacle) if refused => {
            Failure { remedy: Some(obstacle.remedy), ..Failure::failed(obstacle.what) }
        }
        _ => failure,
    }
}

/// Runs the command.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn cachetop(options: &Options) -> Result<(), Failure> {
    // Mistakes are reported before anything is loaded. The engine may still turn out to be another one.
    let (_, config) = settings(options, options.counting.engine.unwrap_or(Engine::Exact))
        .map_err(|failure| reason(options, failure))?;
    if let Some(warning) =
        config.as_deref().filter(|_| options.config == Config::Usual).and_then(super::config::unreadable)
    {
        crate::text::output::say(&format!("cachetop: warning: {warning}"));
    }
    if let Some((path, _)) = &options.replay {
        replayable(path)?;
    }
    let on_screen = options.output == Output::Screen;
    if on_screen && !options.counting.explain {
        super::terminal::check()?;
    }
    if options.replay.is_some() && !on_screen {
        Role::Replay.take(&[])?;
        return super::replay::batch(options, config, &mut std::io::stdout().lock());
    }
    let live = options.replay.is_none();
    let processes = if live { options.chosen.watch()? } else { Processes::default() };
    if let Some(notice) = options.chosen.notice().filter(|_| live) {
        crate::text::output::say(&format!("cachetop: notice: {notice}"));
    }
    if options.counting.explain {
        let mut counting = count(options, config, processes.seen)?;
        let text = counting.engines.explained(Role::Count, options.output == Output::Json);
        return output::print(&text, &mut std::io::stdout().lock());
    }
    if on_screen {
        return super::screen::run(options, processes, config);
    }
    let seen = processes.seen;
    let mut wait = crate::wait::System::new(processes).map_err(anyhow::Error::from)?;
    let Some(mut counting) = wait.unless_asked(|| count(options, config, seen))? else { return Ok(()) };
    if let Some(notice) = &counting.scene.notice {
        crate::text::output::say(&format!("cachetop: warning: {}", foreign::line(notice)));
    }
    let (in_force, _) = settings(options, counting.scene.engine)?;
    Role::Count.take(&[])?;
    super::batch::run(
        options,
        &in_force,
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
