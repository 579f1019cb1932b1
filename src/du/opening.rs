//! Files that a user or a process names: opened only where that does no harm, and looked at.

use std::fs;
use std::os::fd::AsFd as _;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;

use super::kinds;
use super::open;
use super::residency;
use super::residency::Ask;
use super::residency::Unknown;
use super::totals::Totals;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// To see what is cached: it is left alone where opening it would change that.
    Look,
    /// To do what was requested.
    Act,
}

/// Opens a path that a user names, if it is a file, a directory or a block device.
pub(super) fn open_named(path: &Path, aim: Aim) -> Result<(OwnedFd, Statx), Unknown> {
    let at = open::Reached::new(path)?;
    let stat = rustix::fs::statx(at.dir(), &at.name, AtFlags::empty(), StatxFlags::BASIC_STATS)?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory {
        let device = residency::regular(&stat)?.is_none();
        if aim == Aim::Look && !device {
            kinds::bears_opening(at.dir(), &*at.name)?;
        }
    }
    let fd = open::named(&at)?;
    // What was opened is what is counted, should the name have another meaning by now.
    let stat = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok((fd, stat))
}

/// The same, of a path that was looked at just before, had this type, and bears it.
pub(super) fn open_seen(path: &Path, kind: FileType, aim: Aim) -> Result<(OwnedFd, Statx), Unknown> {
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return open_named(path, aim);
    }
    let fd = open::named(&open::Reached::new(path)?)?;
    let stat = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok((fd, stat))
}

/// Opens a file of a process, if it is still the one that was found: a process closes files and opens others.
pub(super) fn open_same(via: &Path, inode: (u64, u64), aim: Aim) -> Result<(OwnedFd, Statx), Unknown> {
    if look(via).is_none_or(|(found, _)| found != inode) {
        return Err(Unknown::Vanished);
    }
    let (fd, stat) = open_named(via, aim)?;
    if open::inode(&stat) == inode { Ok((fd, stat)) } else { Err(Unknown::Vanished) }
}

/// Whether it can be opened to be looked at.
pub(super) fn bears_opening(path: &Path) -> Result<(), Unknown> {
    let at = open::Reached::new(path)?;
    kinds::bears_opening(at.dir(), &*at.name)
}

/// Which file a name stands for, and of what type it is.
pub(super) fn look(path: &Path) -> Option<((u64, u64), FileType)> {
    let at = open::Reached::new(path).ok()?;
    let stat = rustix::fs::statx(at.dir(), &at.name, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
    Some((open::inode(&stat), FileType::from_raw_mode(stat.stx_mode.into())))
}

/// What a name stands for, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Device and inode.
    pub(super) inode: (u64, u64),
    /// Its type.
    pub(super) kind: FileType,
    /// Whether the name is a symbolic link to it.
    pub(super) link: bool,
}

/// The same of a name that is perhaps a symbolic link: one question, but for these.
pub(super) fn seen(path: &Path) -> Option<Seen> {
    let at = open::Reached::new(path).ok()?;
    let look = |flags| {
        let stat = rustix::fs::statx(at.dir(), &at.name, flags, StatxFlags::BASIC_STATS).ok()?;
        let kind = FileType::from_raw_mode(stat.stx_mode.into());
        Some(Seen { inode: open::inode(&stat), kind, link: false })
    };
    match look(AtFlags::SYMLINK_NOFOLLOW)? {
        seen if seen.kind.is_symlink() => Some(Seen { link: true, ..look(AtFlags::empty())? }),
        seen => Some(seen),
    }
}

/// What is cached of a file that a user or a process named.
pub(super) fn file(path: &Path, ask: Ask) -> (Totals, Option<Unknown>) {
    counted(path, &open_named(path, Aim::Look), |fd, _| ask.on(fd))
}

/// What is cached of a file that was opened, or why that is not known; its size, if it has one all the same. `ask`: how, on
/// its file system.
pub(super) fn counted(
    path: &Path,
    opened: &Result<(OwnedFd, Statx), Unknown>,
    ask: impl Fn(BorrowedFd<'_>, &Statx) -> Ask,
) -> (Totals, Option<Unknown>) {
    match opened {
        Ok((fd, stat)) => {
            let ask = ask(fd.as_fd(), stat);
            let answer = match residency::regular(stat) {
                Ok(Some(size)) => ask.of_size(fd.as_fd(), size),
                _ => ask.residency(fd.as_fd()),
            };
            let disk = stat.stx_blocks * 512;
            (Totals::of_file(stat.stx_size, disk, answer.as_ref().map_err(|e| *e)), answer.err())
        }
        Err(why) => {
            let why = *why;
            // Its size may be known though it cannot be opened.
            let meta = fs::metadata(path).ok();
            let (size, disk) =
                meta.filter(fs::Metadata::is_file).map_or((0, 0), |m| (m.len(), m.blocks() * 512));
            (Totals::of_file(size, disk, Err(why)), Some(why))
        }
    }
}
