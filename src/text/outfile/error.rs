//! Why a file cannot be written, and what can be done about it.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::exit::Code;
use crate::exit::Failure;
use crate::text::foreign::Foreign;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What the system says.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Somebody else's link, pipe or file, where anybody may put such a thing.
    #[error("{0} of somebody else (user {1}) lies there, in a directory that everybody may write to")]
    Planted(&'static str, u32),
}

impl From<Errno> for Error {
    fn from(error: Errno) -> Self {
        Error::Io(error.into())
    }
}

impl Error {
    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        let Error::Io(error) = self else {
            return "remove it, or name a file in a directory of your own";
        };
        match error.raw_os_error().unwrap_or(0) {
            libc::ENOSPC => "make room on that disk, or name a file on another",
            libc::EDQUOT => "your quota there is used up: make room, or name a file on another disk",
            libc::EFBIG => "a file may not be that large there: name one elsewhere",
            libc::EROFS => "that file system is read-only: name a file on another",
            libc::EACCES | libc::EPERM => "name a file in a directory that you may write to",
            libc::ENOENT => "make the directory first, or name a file in one that is there",
            libc::ENOTDIR => "a part of the path is no directory: correct it",
            libc::EISDIR => "that is a directory: name a file in it",
            libc::ELOOP => "symbolic links lead in a circle there: name another file",
            libc::ENAMETOOLONG => "name it by a shorter name",
            libc::EPIPE => "nobody reads that pipe any more",
            libc::EIO => "the disk fails: name a file on another",
            libc::ETXTBSY => "it is a program that runs: name another file",
            _ => "name a file in a directory that is there and may be written",
        }
    }

    /// As a failure of the program, whose work this is the end of.
    #[must_use]
    pub fn about(&self, path: &Path) -> Failure {
        let path = Foreign::from(path);
        Failure::failed(format!("cannot write {path}: {self}")).remedy(self.remedy())
    }

    /// The same before there is any work: a path at which no file can be is wrong usage. That one may not write there, that
    /// somebody has put something there, or that there is no room, is not the fault of who wrote the command line.
    #[must_use]
    pub fn about_the_request(&self, path: &Path) -> Failure {
        let failure = self.about(path);
        let Error::Io(error) = self else { return failure };
        match error.raw_os_error().unwrap_or(0) {
            libc::ENOENT | libc::ENOTDIR | libc::EISDIR | libc::ELOOP | libc::ENAMETOOLONG => {
                Failure { code: Code::Usage, ..failure }
            }
            _ => failure,
        }
    }
}
