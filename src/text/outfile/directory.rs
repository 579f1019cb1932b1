//! Directories that are made for the user.

use std::fs;
use std::io;
use std::path::Path;

use super::sudo;
use crate::exit::Failure;
use crate::text::foreign::Foreign;

/// Whether a directory is there, or the one that it would be made in: who misspells a path is not to find a tree of that
/// name later.
///
/// # Errors
/// Where neither is.
pub fn may_make(path: &Path) -> Result<(), Failure> {
    // Of a name alone it is the working directory.
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let Some(above) = above.filter(|above| !path.is_dir() && !above.is_dir()) else { return Ok(()) };
    let (path, above) = (Foreign::from(path), Foreign::from(above));
    Err(Failure::usage(format!("cannot make {path}: there is no directory {above}"))
        .remedy("make that first, or name a directory in one that is there"))
}

/// Makes a directory in one that is there.
///
/// # Errors
/// As [`may_make`], and what the system says.
pub fn make_directory(path: &Path) -> Result<(), Failure> {
    may_make(path)?;
    make_directories(path).map_err(|e| Failure::failed(format!("cannot make {}: {e}", Foreign::from(path))))
}

/// Makes a directory and those above it; under sudo they belong to the user who called it.
///
/// # Errors
/// When the system refuses.
pub fn make_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_directories(above)?;
    }
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(_) if path.is_dir() => return Ok(()),
        Err(e) => return Err(e),
    }
    if let Some((uid, gid)) = sudo() {
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
    }
    Ok(())
}
