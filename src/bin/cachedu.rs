//! `cachedu`: what is resident in the page cache.

use std::io;
use std::process::ExitCode;

use cachetop::du::cli::Args;
use cachetop::du::run;
use cachetop::du::run::End;

fn main() -> ExitCode {
    cachetop::limits::raise();
    cachetop::cli::log();
    let args: Args = match cachetop::cli::parse(Args::check) {
        Ok(args) => args,
        Err(code) => return code,
    };
    if let Some(what) = args.generate {
        return match cachetop::du::printing::print(
            cachetop::du::cli::generate(what).as_bytes(),
            &mut io::stdout().lock(),
        ) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report("cachedu", &mut io::stderr()),
        };
    }
    match run::run(&args.options(), &mut io::stdout().lock(), &mut io::stderr()) {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Partly) => ExitCode::FAILURE,
        Err(failure) => failure.report("cachedu", &mut io::stderr()),
    }
}
