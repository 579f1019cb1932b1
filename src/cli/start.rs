//! What all commands have in common at their start: reading the command line, and printing what it asks about itself.

use std::io;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;
use clap_complete::Shell;

use super::Generated;
use super::manual_of;

/// Reads the command line. What it asks for beside the work, help and version, is printed here: clap would end with 0
/// though the output cannot be written.
///
/// # Errors
/// The exit code, when everything is said.
pub fn parse<T: Parser>() -> Result<T, ExitCode> {
    let error = match T::try_parse() {
        Ok(args) => return Ok(args),
        Err(error) => error,
    };
    // A terminal gets the colours.
    if error.use_stderr() || io::stdout().is_terminal() {
        error.exit();
    }
    let printed = crate::run::print(&error.render().to_string(), &mut io::stdout().lock());
    let name = T::command().get_name().to_owned();
    Err(printed.map_or_else(|failure| failure.report(&name, &mut io::stderr()), |()| ExitCode::SUCCESS))
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
