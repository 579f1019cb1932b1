//! What all commands have in common at their start: reading the command line, and printing what it asks about itself.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::io::IsTerminal as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use clap::Parser;
use clap_complete::Shell;

use super::Generated;
use super::manual_of;
use crate::foreign;

/// Reads the command line. What it asks for beside the work, help and version, is printed here: clap would end with 0
/// though the output cannot be written.
///
/// # Errors
/// The exit code, when everything is said.
pub fn parse<T: Parser>(check: impl Fn(&T) -> Result<(), clap::Error>) -> Result<T, ExitCode> {
    // What does not go together is told only of what can be read.
    let read = |words: &mut dyn Iterator<Item = OsString>| {
        T::try_parse_from(words).and_then(|args| check(&args).map(|()| args))
    };
    let error = match read(&mut std::env::args_os()) {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    // A terminal gets the colours.
    if error.use_stderr() {
        refuse(error, |words| read(&mut words.into_iter()).err());
    } else if io::stdout().is_terminal() {
        error.exit();
    }
    let printed = crate::run::print(&error.render().to_string(), &mut io::stdout().lock());
    let name = T::command().get_name().to_owned();
    Err(printed.map_or_else(|failure| failure.report(&name, &mut io::stderr()), |()| ExitCode::SUCCESS))
}

/// Says what is wrong with the command line, and ends. clap repeats words of it as they are: where one of them would do
/// something to the terminal, it is told what is wrong with the same words escaped.
fn refuse(error: clap::Error, again: impl FnOnce(Vec<OsString>) -> Option<clap::Error>) -> ! {
    let text = error.render().to_string();
    if foreign::lines(&text) == text && !std::env::args_os().any(|a| a.as_bytes().contains(&b'\n')) {
        error.exit();
    }
    let words = std::env::args_os().map(|word| match foreign::line(&word.to_string_lossy()) {
        Cow::Borrowed(_) => word,
        Cow::Owned(escaped) => escaped.into(),
    });
    let error = again(words.collect()).filter(clap::Error::use_stderr).unwrap_or(error);
    let _ = io::stderr().write_all(foreign::lines(&error.render().to_string()).as_bytes());
    std::process::exit(error.exit_code());
}

/// The log and the words of a panic, through the gate for foreign text.
pub fn log() {
    let line = |out: &mut env_logger::fmt::Formatter, record: &log::Record<'_>| {
        writeln!(
            out,
            "[{} {}] {}",
            record.level(),
            record.target(),
            foreign::lines(&record.args().to_string())
        )
    };
    env_logger::Builder::from_default_env().format(line).init();
    std::panic::set_hook(Box::new(|info| {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        let text = format!("thread '{name}' {info}\n{}", std::backtrace::Backtrace::capture());
        let _ = writeln!(io::stderr(), "{}", foreign::lines(text.trim_end()));
    }));
}

/// The manual page, with these sections beyond what clap knows, or completions for a shell.
pub(crate) fn generated(mut command: clap::Command, sections: &str, what: Generated) -> String {
    let shell = match what {
        Generated::Man => return manual_of(command, sections),
        Generated::Bash => Shell::Bash,
        Generated::Zsh => Shell::Zsh,
        Generated::Fish => Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
