//! A line on the terminal that says how far a series of runs has come.
//!
//! It is there only while the terminal is ours: between runs, or where what the command prints is thrown away. What a
//! command has left on the line stays: the cursor is put back to where it was.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::io::Write as _;

/// Saves the cursor, and lets nothing wrap.
const BEGIN: &str = "\x1b7\x1b[?7l";
/// Wraps again.
const END: &str = "\x1b[?7h";
/// Back to the cursor, and clears what stands there.
const CLEAR: &str = "\x1b8\x1b[K";

/// The line.
pub(super) struct Progress {
    /// Whether somebody looks.
    on: bool,
    shown: Cell<bool>,
}

impl Progress {
    /// For a series; nothing is shown where standard error is no terminal, or one that knows no cursor.
    pub(super) fn new(series: bool) -> Self {
        let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self { on: series && able && std::io::stderr().is_terminal(), shown: Cell::new(false) }
    }

    /// Shows the line, in place of the one before.
    pub(super) fn show(&self, text: &str) {
        if self.on {
            let clear = if self.shown.replace(true) { CLEAR } else { "" };
            let text = crate::text::foreign::line(text);
            // Nobody is helped by an error about this.
            let _ = write!(std::io::stderr(), "{clear}{BEGIN}cachestat: {text}{END}");
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.shown.replace(false) {
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
