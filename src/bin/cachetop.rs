//! `cachetop`: page-cache hits and misses live.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::exit::Failure;
use cachetop::top::start;

fn main() -> ExitCode {
    cachetop::heap::keep_little();
    if let Err(short) = cachetop::limits::raise() {
        return Failure::from(short).report("cachetop", &mut io::stderr());
    }
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
