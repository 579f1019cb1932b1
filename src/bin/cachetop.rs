//! `cachetop`: page-cache hits and misses live.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::top::start;

fn main() -> ExitCode {
    cachetop::heap::keep_little();
    cachetop::limits::raise();
    cli::log();
    let options = match cli::parse::<cli::top::Args>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match start::cachetop(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachetop", &mut io::stderr()),
    }
}
