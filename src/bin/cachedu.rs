//! `cachedu`: what is resident in the page cache.

use std::io;
use std::process::ExitCode;

use cachetop::cli;
use cachetop::du::run;
use cachetop::du::run::End;
use cachetop::exit::Failure;

fn main() -> ExitCode {
    if let Err(short) = cachetop::limits::raise() {
        return Failure::from(short).report("cachedu", &mut io::stderr());
    }
    cli::log();
    let options = match cli::parse::<cli::du::Args>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match run::run(&options, &mut io::stdout().lock(), &mut io::stderr()) {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Partly) => ExitCode::FAILURE,
        Err(failure) => failure.report("cachedu", &mut io::stderr()),
    }
}
