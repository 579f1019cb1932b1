//! `cachestat`: page-cache hits and misses, interval by interval.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::cli::Args;
use cachetop::engines::Engines;
use cachetop::exit::Failure;
use cachetop::files;
use cachetop::files::Wanted;
use cachetop::pivot::Filter;
use cachetop::pivot::Pivot;
use cachetop::pivot::System;
use cachetop::report;
use cachetop::run;
use cachetop::run::World;
use cachetop::sample::Comm;
use cachetop::session::Options;
use cachetop::view;
use cachetop::view::Surroundings;
use cachetop::wait;
use cachetop::wait::Process;
use clap::Parser as _;

fn main() -> ExitCode {
    env_logger::init();
    let args = Args::parse();
    if let Err(error) = args.check() {
        error.exit();
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
fn pivot(args: &Args) -> Result<Pivot, Failure> {
    let names = System::new();
    let missing =
        |what: String, remedy: &str| Failure { remedy: Some(remedy.into()), ..Failure::usage(what) };
    let mut filter = Filter { pid: args.pid, ..Filter::default() };
    filter.comm = args.comm.as_deref().map(Comm::from);
    if let Some(path) = &args.cgroup {
        let path = names.cgroups.canonical(path);
        if names.cgroups.find(&path).is_none() {
            let remedy = "/proc/PID/cgroup names the cgroup of a process; 'systemd-cgls' lists all";
            return Err(missing(format!("there is no cgroup {path}"), remedy));
        }
        filter.cgroup = Some(path);
    }
    let remedy = "name a path that exists, on a file system that is mounted here";
    if let Some(path) = &args.file {
        let wanted = Wanted::new(path, &names.mounts)
            .map_err(|e| missing(format!("cannot look up {}: {e}", path.display()), remedy))?;
        filter.file = Some(wanted);
    }
    if let Some(path) = &args.mount {
        let mount = files::mount_of(path, &names.mounts)
            .map_err(|e| missing(format!("cannot look up {}: {e}", path.display()), remedy))?;
        if mount.kind == "overlay" {
            let remedy = "name a path on the file system of its layers: 'findmnt -t overlay' lists them";
            let what = format!("{} is on overlayfs, which caches nothing itself", path.display());
            return Err(missing(what, remedy));
        }
        filter.mount = Some(mount.dev);
    }
    Ok(Pivot { by: args.by, top: args.top as usize, filter, names: Box::new(names) })
}

fn cachestat(mut args: Args) -> Result<(), Failure> {
    let out = &mut io::stdout().lock();
    if let Some(what) = args.generate {
        return run::print(&cli::generate(what), out);
    }
    // Before anything is loaded: a process that is not there is a matter of usage, and one that ends while
    // we load must not be mistaken for a later one with its id.
    let process = args.pid.map(Process::open).transpose()?;
    let mut pivot = pivot(&args)?;
    let mut options = Options {
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
        eprintln!("cachestat: warning: {notice}");
    }
    args.engine = Some(engines.engine());
    if args.explain {
        return run::print(&engines.explain(), out);
    }
    let mut wait = wait::System::new(process).map_err(anyhow::Error::from)?;
    let mut view = view::of(&args, Surroundings::here());
    let world =
        World { source: &mut engines, pivot: &mut pivot, wait: &mut wait, out, err: &mut io::stderr() };
    run::run(&args, view.as_mut(), world)
}
