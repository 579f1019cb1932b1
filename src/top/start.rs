//! The command from its start to its end.

use crate::exit::Failure;
use crate::foreign;
use crate::plan::Engine;
use crate::top::cli::Args;
use crate::top::counting::count;
use crate::top::counting::settings;
use crate::wait::Process;

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
    let (in_force, _) = settings(args, counting.scene.engine)?;
    let mut wait = crate::wait::System::new(process).map_err(anyhow::Error::from)?;
    super::batch::run(
        args,
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
