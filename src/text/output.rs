//! Writing to standard output.

use std::io;
use std::io::Write;

use crate::exit::Failure;
use crate::exit::MAKE_ROOM;
use crate::exit::is_full;

/// Writes a part of the output in one go, so that no reader sees half of it; `false` if nobody reads it any more.
///
/// # Errors
/// When it cannot be written.
pub fn offer(text: &[u8], out: &mut dyn Write) -> io::Result<bool> {
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(e),
    }
}

/// Says something on standard error, whose terminal may be gone: then nobody is there to hear it.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What is said where the output cannot be written.
#[must_use]
pub fn failure(error: &io::Error) -> Failure {
    let failed = Failure::failed(format!("cannot write the output: {error}"));
    if is_full(error.kind()) { failed.remedy(MAKE_ROOM) } else { failed }
}

/// Prints a text in one go; a closed pipe is no error.
///
/// # Errors
/// When the output cannot be written.
pub fn print(text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    offer(text.as_bytes(), out).map(drop).map_err(|e| failure(&e))
}
