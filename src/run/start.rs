//! `cachestat` from its options to its last interval.

use std::io;

use crate::engines::Engines;
use crate::exit::Failure;
use crate::pivot::Pivot;
use crate::pivot::System;
use crate::run;
use crate::run::Options;
use crate::run::World;
use crate::text::foreign;
use crate::text::output;
use crate::view;
use crate::view::Surroundings;
use crate::wait;
use crate::wait::Process;

/// Counts, and shows interval by interval.
///
/// # Errors
/// When it could not do what is requested; with the remedy.
pub fn cachestat(mut options: Options) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let process = options.chosen.pid.map(Process::open).transpose()?;
    let names = System::new();
    let (filter, only) = options.chosen.look_up(&names)?;
    let mut pivot = Pivot { by: options.by, top: options.top, filter, names: Box::new(names) };
    let mut wants = options.wants();
    wants.files = pivot.files();
    let mut engines = Engines::open(&options.counting.session(wants, only), options.counting.engine)
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if let Some(notice) = engines.notice() {
        crate::text::output::say(&format!("cachestat: warning: {}", foreign::line(notice)));
    }
    // Which columns there are depends on what counts after all.
    options.counting.engine = Some(engines.engine());
    if options.counting.explain {
        return output::print(&foreign::lines(&engines.explain()), out);
    }
    let mut wait = wait::System::new(process).map_err(anyhow::Error::from)?;
    let mut view = view::new(&options, Surroundings::here());
    let world =
        World { source: &mut engines, pivot: &mut pivot, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(&options, view.as_mut(), world)
}
