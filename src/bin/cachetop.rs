//! `cachetop`: page-cache hits and misses live.

use std::io;
use std::process::ExitCode;

use cachetop::top::cli::Args;
use cachetop::top::start;

fn main() -> ExitCode {
    env_logger::init();
    let args: Args = match cachetop::cli::parse() {
        Ok(args) => args,
        Err(code) => return code,
    };
    if let Err(error) = args.check() {
        error.exit();
    }
    match start::cachetop(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachetop", &mut io::stderr()),
    }
}
