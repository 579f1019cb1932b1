//! What `cachetopd` says: on standard error, each line under its name.

use crate::text::foreign;
use crate::text::output;

/// Says a line; nothing in it acts on a terminal.
pub(super) fn say(text: &str) {
    output::say(&format!("cachetopd: {}", foreign::line(text)));
}
