//! What all commands have in common at their start: reading the command line, and printing what it asks about itself.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::io::IsTerminal as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use super::Generated;
use super::complete;
use super::habits;
use super::habits::Habits;
use super::help::Section;
use super::instead;
use super::instead::Instead;
use super::manual;
use crate::exit::Failure;
use crate::text::foreign;
use crate::text::output;

/// A command line, and what it stands for.
pub trait CommandLine: Parser {
    /// What is to be done, in plain values.
    type Task;

    /// The end of `-h`.
    const SHORT: &'static str;

    /// What the manual page says in front of the options: paragraphs.
    const MANUAL: &'static str;

    /// What others have, and this command in another way.
    const HABITS: Habits;

    /// What to write instead of two options that exclude each other.
    const INSTEAD: Instead = &[];

    /// What `--help` and the manual page say beyond the options.
    fn sections() -> Vec<Section>;

    /// What goes together, beyond what the definition of options says.
    ///
    /// # Errors
    /// The message for whoever requested it.
    fn check(&self) -> Result<(), String>;

    /// What is to be printed instead of any work.
    fn generated(&self) -> Option<Generated>;

    /// Prints that.
    ///
    /// # Errors
    /// When it cannot be written.
    fn print(text: &str) -> Result<(), Failure> {
        output::print(text, &mut io::stdout().lock())
    }

    /// What is to be done.
    ///
    /// # Errors
    /// Wrong usage that the definition of options does not see.
    fn task(self) -> Result<Self::Task, Failure>;
}

/// Reads the command line. What it requests beside the work, help, version and what is generated, is printed here.
///
/// # Errors
/// The exit code, when everything is said.
pub fn parse<C: CommandLine>() -> Result<C::Task, ExitCode> {
    let args = read::<C>()?;
    let generated = args.generated();
    let failed = |failure: Failure| failure.report(C::command().get_name(), &mut io::stderr());
    let task = args.task().map_err(failed)?;
    match generated {
        None => Ok(task),
        Some(what) => Err(C::print(&generate::<C>(what)).map_or_else(failed, |()| ExitCode::SUCCESS)),
    }
}

/// The same, if its options go together.
///
/// # Errors
/// As clap says what is wrong.
pub fn checked<C: CommandLine>(args: C) -> Result<C, clap::Error> {
    match args.check() {
        Ok(()) => Ok(args),
        Err(text) => Err(C::command().error(clap::error::ErrorKind::ArgumentConflict, text)),
    }
}

/// What does not go together.
pub(super) fn conflict(text: &str) -> Result<(), String> {
    Err(text.to_owned())
}

/// Reads words. What does not go together is told only of what can be read.
pub(super) fn read_words<C: CommandLine>(words: &[OsString]) -> Result<C, clap::Error> {
    let taught = |error| {
        let instead = instead::hint(&error, C::INSTEAD);
        habits::taught(error, &C::command(), C::HABITS, words, instead)
    };
    C::try_parse_from(words).map_err(taught).and_then(checked)
}

/// clap would end with 0 though help or version cannot be written.
fn read<C: CommandLine>() -> Result<C, ExitCode> {
    let error = match read_words::<C>(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    // A terminal gets the colours.
    if error.use_stderr() {
        refuse(error, |words| read_words::<C>(&words).err());
    } else if io::stdout().is_terminal() {
        error.exit();
    }
    let printed = output::print(&error.render().to_string(), &mut io::stdout().lock());
    let name = C::command().get_name().to_owned();
    Err(printed.map_or_else(|failure| failure.report(&name, &mut io::stderr()), |()| ExitCode::SUCCESS))
}

/// Says what is wrong with the command line, and ends. clap repeats words of it as they are: where one of them would do
/// something to the terminal, it is told what is wrong with the same words escaped.
fn refuse(error: clap::Error, again: impl FnOnce(Vec<OsString>) -> Option<clap::Error>) -> ! {
    // Not of the rendered text alone: what is not for a terminal has lost sequences that colour, also those of the words.
    let text = error.render().to_string();
    let acts = |word: OsString| matches!(foreign::line(&word.to_string_lossy()), Cow::Owned(_));
    if foreign::lines(&text) == text && !std::env::args_os().any(acts) {
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

/// The manual page, or completions for a shell.
#[must_use]
pub fn generate<C: CommandLine>(what: Generated) -> String {
    let command = C::command();
    match what {
        Generated::Man => manual::page(command, C::MANUAL, C::sections()),
        Generated::Bash => complete::bash(command),
        Generated::Zsh => complete::zsh(command),
        Generated::Fish => complete::fish(command),
    }
}
