//! `cachestat`: page-cache hits and misses, interval by interval.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::cli::Args;
use cachetop::engines::Engines;
use cachetop::exit::Failure;
use cachetop::only::Only;
use cachetop::pivot::Choice;
use cachetop::pivot::Pivot;
use cachetop::pivot::System;
use cachetop::report;
use cachetop::run;
use cachetop::run::World;
use cachetop::session::Options;
use cachetop::view;
use cachetop::view::Surroundings;
use cachetop::wait;
use cachetop::wait::Process;

fn main() -> ExitCode {
    cachetop::limits::raise();
    cachetop::cli::log();
    let args: Args = match cli::parse(Args::check) {
        Ok(args) => args,
        Err(code) => return code,
    };
    // What a script writes when its variable is empty; without this it would be watched for ever.
    if std::env::args_os().next_back().is_some_and(|a| a == "--") && args.watched.command.is_empty() {
        let what = Failure::usage("a COMMAND is required after '--'");
        return what.report("cachestat", &mut io::stderr());
    }
    let done = if args.watched.report() && args.generate.is_none() {
        report::explain(&args)
    } else {
        cachestat(args).map(|()| ExitCode::SUCCESS)
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report("cachestat", &mut io::stderr()),
    }
}

/// What the options choose, looked up while it is there.
fn pivot(args: &Args) -> Result<(Pivot, Only), Failure> {
    let names = System::new();
    let choice = Choice {
        pid: args.pid,
        comm: args.comm.as_deref(),
        cgroup: args.cgroup.as_deref(),
        file: args.file.as_deref(),
        mount: args.mount.as_deref(),
    };
    let (filter, only) = choice.look_up(&names)?;
    Ok((Pivot { by: args.by, top: args.top as usize, filter, names: Box::new(names) }, only))
}

fn cachestat(mut args: Args) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    if let Some(what) = args.generate {
        return run::print(&cli::generate(what), out);
    }
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let process = args.pid.map(Process::open).transpose()?;
    let (mut pivot, only) = pivot(&args)?;
    let mut options = Options {
        only,
        include_self: args.include_self,
        wants: args.wants(),
        refuse: args.refuse.clone(),
        ..Options::default()
    };
    if let Some(rows) = args.table_size {
        options.table = rows;
    }
    options.wants.files = pivot.files();
    options.files = args.file_table;
    let mut engines = Engines::open(&options, args.engine)
        .map_err(|e| Failure { remedy: e.remedy().map(String::from), ..Failure::failed(&e) })?;
    if let Some(notice) = engines.notice() {
        eprintln!("cachestat: warning: {}", cachetop::foreign::line(notice));
    }
    args.engine = Some(engines.engine());
    if args.explain {
        return run::print(&cachetop::foreign::lines(&engines.explain()), out);
    }
    let mut wait = wait::System::new(process).map_err(anyhow::Error::from)?;
    let mut view = view::of(&args, Surroundings::here());
    let world =
        World { source: &mut engines, pivot: &mut pivot, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(&args, view.as_mut(), world)
}
