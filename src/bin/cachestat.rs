//! `cachestat`: page-cache hits and misses, interval by interval, or of one command, explained.

use std::io;
use std::process::ExitCode;

use cachetop::blame;
use cachetop::cli;
use cachetop::cli::stat::Task;
use cachetop::exit::Failure;
use cachetop::report;
use cachetop::run;
use cachetop::working;

fn main() -> ExitCode {
    cachetop::heap::keep_little();
    if let Err(short) = cachetop::limits::raise() {
        return Failure::from(short).report("cachestat", &mut io::stderr());
    }
    cli::log();
    let task = match cli::parse::<cli::stat::Args>() {
        Ok(task) => task,
        Err(code) => return code,
    };
    let done = match task {
        Task::Report(options) => report::start::explain(&options),
        Task::WhatIf(options, html) => {
            report::predicted::what_if(&options, html.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Task::Blame(options) => blame::start::blame(&options).map(|()| ExitCode::SUCCESS),
        Task::WorkingSet(options) => working::start::working_set(&options).map(|()| ExitCode::SUCCESS),
        Task::Intervals(options) => run::start::cachestat(*options).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report("cachestat", &mut io::stderr()),
    }
}
