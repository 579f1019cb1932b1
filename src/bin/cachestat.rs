//! `cachestat`: page-cache hits and misses, interval by interval.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::cli::Args;
use cachetop::exit::Failure;
use cachetop::run;
use cachetop::run::World;
use cachetop::session::Options;
use cachetop::session::Session;
use cachetop::view;
use cachetop::view::Surroundings;
use cachetop::wait::Process;
use cachetop::wait::System;
use clap::Parser as _;

fn main() -> ExitCode {
    env_logger::init();
    let args = Args::parse();
    match cachestat(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachestat", &mut io::stderr()),
    }
}

fn cachestat(args: &Args) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    if let Some(what) = args.generate {
        return run::print(&cli::generate(what), out);
    }
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let process = args.pid.map(Process::open).transpose()?;
    let mut options = Options { include_self: args.include_self, wants: args.wants(), ..Options::default() };
    if let Some(rows) = args.table_size {
        options.table = rows;
    }
    let mut session = Session::open(&options)
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if args.explain {
        return run::print(&session.explain(), out);
    }
    let mut wait = System::new(process).map_err(anyhow::Error::from)?;
    let mut view = view::of(args, Surroundings::here());
    let world = World { source: &mut session, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(args, view.as_mut(), world)
}
