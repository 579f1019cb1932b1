//! What is a file, and how large it is.

use std::os::fd::BorrowedFd;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::SeekFrom;
use rustix::fs::Statx;
use rustix::fs::StatxAttributes;
use rustix::fs::StatxFlags;

use super::unknown::Unknown;

/// The size of an open file in bytes, and whether it is one that the page cache holds.
///
/// # Errors
/// For what is neither a regular file nor a block device, and for files that are not cached by nature.
pub fn size(fd: BorrowedFd<'_>) -> Result<u64, Unknown> {
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    match regular(&stat)? {
        Some(size) => Ok(size),
        None => Ok(rustix::fs::seek(fd, SeekFrom::End(0))?),
    }
}

/// The size of a regular file; `None` for a block device, which has to be opened to be asked.
///
/// # Errors
/// For everything else, and for files that bypass the page cache.
pub fn regular(stat: &Statx) -> Result<Option<u64>, Unknown> {
    let what = match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::RegularFile if stat.stx_attributes.contains(StatxAttributes::DAX) => {
            return Err(Unknown::Dax);
        }
        FileType::RegularFile => return Ok(Some(stat.stx_size)),
        FileType::BlockDevice => return Ok(None),
        FileType::Directory => "it is a directory",
        FileType::Symlink => "it is a symbolic link",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::CharacterDevice => "it is a character device",
        FileType::Unknown => "it is of an unknown type",
    };
    Err(Unknown::NotAFile(what))
}
