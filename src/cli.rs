//! The command lines: one definition each for parsing, help, manual page and completions.
//!
//! What is to be done comes out as plain values ([`crate::run::Options`], [`crate::report::Options`],
//! [`crate::top::options::Options`], [`crate::du::options::Options`]); nothing below here knows how it was written.

mod complete;
pub mod daemon;
pub mod du;
mod habits;
mod help;
mod instead;
mod manual;
mod read;
mod shared;
mod start;
pub mod stat;
pub mod top;
mod values;

use clap::ValueEnum;

pub use habits::Habits;
pub use instead::Instead;
pub use shared::Common;
pub use shared::Filters;
pub use shared::How;
pub use shared::Itself;
pub use shared::Room;
pub use start::CommandLine;
pub use start::checked;
use start::conflict;
pub use start::generate;
pub use start::log;
pub use start::parse;
pub use stat::Args;

/// What `--generate` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// The manual page.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
}

#[cfg(test)]
mod tests;
