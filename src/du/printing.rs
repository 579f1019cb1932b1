//! What is written to standard output.

use std::io::Write;

use super::found::Found;
use super::options::Format;
use super::options::Options;
use super::row::Kind;
use super::view;
use super::view::Layout;
use crate::exit::Failure;
use crate::text::output;

/// Shows what was found.
///
/// # Errors
/// When it cannot be written.
pub(super) fn show(options: &Options, found: &Found, out: &mut dyn Write) -> Result<(), Failure> {
    match options.format {
        Format::Csv => return print(&view::csv(&found.rows)?, out),
        Format::Json => {
            let lines: String = found
                .rows
                .iter()
                .map(|r| format!("{}\n", crate::text::foreign::json(&view::json(r))))
                .collect();
            return print(lines.as_bytes(), out);
        }
        Format::Text => {}
    }
    let trees = found.rows.iter().any(|r| r.kind == Kind::Directory);
    let layout = match (options.by_process(), trees) {
        (true, _) => Layout::Owned,
        (_, true) => Layout::Tree,
        _ => Layout::Files,
    };
    print(view::text(&found.rows, layout, options.unit).as_bytes(), out)
}

/// Writes all of it; a reader that has gone is a quiet end.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    offer(text, out).map(drop)
}

/// Writes a part of the output; `false` if nobody reads it any more.
///
/// # Errors
/// When it cannot be written.
pub(super) fn offer(text: &[u8], out: &mut dyn Write) -> Result<bool, Failure> {
    output::offer(text, out).map_err(|e| {
        Failure::from(anyhow::Error::from(e).context("cannot write the output"))
            .remedy("make room on the disk, or send the output elsewhere")
    })
}
