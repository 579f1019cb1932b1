//! Directories that are made for the user.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

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
    make_directories(path)
        .map_err(|e| not_in_directory(format_args!("cannot make {}", Foreign::from(path)), &e))
}

/// What the system refused to do in a directory, and what can be done about it.
pub fn not_in_directory(what: impl Display, error: &io::Error) -> Failure {
    let remedy = match error.raw_os_error().unwrap_or(0) {
        libc::ENOSPC => "make room on that disk, or name a directory on another",
        libc::EDQUOT => "your quota there is used up: make room, or name a directory on another disk",
        libc::EROFS => "that file system is read-only: name a directory on another",
        libc::EACCES | libc::EPERM => "name a directory that you may write to",
        libc::ELOOP => "symbolic links lead in a circle there: name another directory",
        libc::ENAMETOOLONG => "name it by a shorter name",
        _ => "name a directory on a file system that may be written",
    };
    Failure::failed(format!("{what}: {error}")).remedy(remedy)
}

/// Holds a directory, for as long as what is returned is there: who else asks for it so finds it held. By a file in it that
/// stays, which nobody but its owner can open: whoever may read a directory could hold that itself.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where another one holds it; what the system says where nobody can.
pub fn hold(path: &Path, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let others = || io::Error::new(io::ErrorKind::PermissionDenied, "others may hold that file");
    // A lease on a file of somebody else's makes it wait, too.
    let open = rustix::fs::open(path.join(name), flags, Mode::RUSR | Mode::WUSR);
    let file = open.map_err(|e| if e == Errno::WOULDBLOCK { others() } else { e.into() })?;
    let stat = rustix::fs::fstat(&file)?;
    let own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o77 == 0;
    if !own || stat.st_nlink != 1 || !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(others());
    }
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
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
