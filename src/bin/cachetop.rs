//! `cachetop`: page-cache hits and misses live.

use std::io;
use std::process::ExitCode;

use cachetop::top::cli::Args;
use cachetop::top::start;

fn main() -> ExitCode {
    cachetop::limits::raise();
    cachetop::cli::log();
    let args: Args = match cachetop::cli::parse(Args::check) {
        Ok(args) => args,
        Err(code) => return code,
    };
    match start::cachetop(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachetop", &mut io::stderr()),
    }
}
