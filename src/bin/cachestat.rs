//! `cachestat`: page-cache hits and misses, interval by interval.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::cli::Args;
use cachetop::engines::Engines;
use cachetop::exit::Failure;
use cachetop::run;
use cachetop::run::World;
use cachetop::session::Options;
use cachetop::view;
use cachetop::view::Surroundings;
use cachetop::wait::Process;
use cachetop::wait::System;
use clap::Parser as _;

fn main() -> ExitCode {
    env_logger::init();
    match cachestat(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachestat", &mut io::stderr()),
    }
}

fn cachestat(mut args: Args) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    if let Some(what) = args.generate {
        return run::print(&cli::generate(what), out);
    }
    args.check()?;
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let process = args.pid.map(Process::open).transpose()?;
    let mut options =
        Options { include_self: args.include_self, refuse: args.refuse.clone(), ..Options::default() };
    if let Some(rows) = args.table_size {
        options.table = rows;
    }
    let mut engines = Engines::open(&options, args.engine)
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if let Some(notice) = engines.notice() {
        eprintln!("cachestat: warning: {notice}");
    }
    args.engine = Some(engines.engine());
    if args.explain {
        return run::print(&engines.explain(), out);
    }
    let mut wait = System::new(process).map_err(anyhow::Error::from)?;
    let mut view = view::of(&args, Surroundings::here());
    let world = World { source: &mut engines, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(&args, view.as_mut(), world)
}
