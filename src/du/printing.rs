//! What is written to standard output.

use std::io;
use std::io::Write;

use rustix::termios::tcgetwinsize;

use super::found::Found;
use super::options::Options;
use super::row::Kind;
use super::row::Row;
use super::view;
use super::view::Layout;
use super::view::Shape;
use crate::exit::Failure;
use crate::options::Format;
use crate::text::output;

/// What stands above all rows.
///
/// # Errors
/// None that memory does not give.
pub(super) fn head(format: Format, shape: &Shape<'_>) -> Result<Vec<u8>, Failure> {
    Ok(if format == Format::Csv { view::csv_names(shape)? } else { Vec::new() })
}

/// A row as a line of CSV or JSON, behind other text.
///
/// # Errors
/// None that memory does not give.
pub(super) fn line(format: Format, row: &Row, shape: &Shape<'_>, to: &mut Vec<u8>) -> Result<(), Failure> {
    if format == Format::Csv {
        return Ok(view::csv(std::slice::from_ref(row), shape, to)?);
    }
    to.extend_from_slice(crate::text::foreign::json(&view::json(row)).as_bytes());
    to.push(b'\n');
    Ok(())
}

/// Shows what was found, but for what was printed meanwhile.
///
/// # Errors
/// When it cannot be written.
pub(super) fn show(options: &Options, found: &Found, out: &mut dyn Write) -> Result<(), Failure> {
    let shape = options.shape();
    if options.format != Format::Text {
        let mut text = if found.streamed { Vec::new() } else { head(options.format, &shape)? };
        for row in &found.rows {
            line(options.format, row, &shape, &mut text)?;
        }
        return print(&text, out);
    }
    if options.tree {
        let width =
            || tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col)).filter(|n| *n > 0);
        return print(view::tree(&found.rows, width(), &shape).as_bytes(), out);
    }
    let trees = found.rows.iter().any(|r| r.kind == Kind::Directory);
    let layout = match (options.by_process(), trees) {
        (true, _) => Layout::Owned,
        (_, true) => Layout::Tree,
        _ => Layout::Files,
    };
    print(view::text(&found.rows, layout, &shape).as_bytes(), out)
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
