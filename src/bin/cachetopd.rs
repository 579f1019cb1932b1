//! `cachetopd`: the page cache, recorded and measured as long as the machine is up.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::daemon::start;
use cachetop::exit::Failure;

fn main() -> ExitCode {
    cachetop::heap::keep_little();
    if let Err(short) = cachetop::limits::raise() {
        return Failure::from(short).report("cachetopd", &mut io::stderr());
    }
    cli::log();
    let options = match cli::parse::<cli::daemon::Args>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match start::cachetopd(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("cachetopd", &mut io::stderr()),
    }
}
