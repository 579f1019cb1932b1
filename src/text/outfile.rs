//! The files that are written for the user: reports, saved figures, pages, sets, settings.
//!
//! A file appears whole or not at all: a new one is written beside it, brought to the disk, and takes its place. What may
//! stand in the way is found out before the work begins ([`Target::new`]), and nothing is left behind where the work does
//! not begin. Pipes and devices that the user names are written to as they are. In a directory where anybody may put
//! things, nothing is followed or written to that somebody else has put there. Under sudo, what is new belongs to the user
//! who called it.

mod directory;
mod error;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Gid;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::Stat;
use rustix::fs::Uid;
use rustix::io::Errno;

pub use directory::hold;
pub use directory::make_directories;
pub use directory::make_directory;
pub use directory::may_make;
pub use directory::not_in_directory;
pub use error::Error;

/// Links that are followed, as many as the kernel would.
const LINKS: usize = 40;
/// Whether everybody may put things into a directory.
const SHARED: u32 = 0o002;
/// procfs, where links lead to open files.
const PROC: u64 = 0x9fa0;

/// Where something is to be written, and that it can be.
#[derive(Debug)]
pub struct Target {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// What takes bytes as they come: standard output, a pipe, a device.
    Stream(File),
    /// A file, there or not.
    Whole {
        dir: OwnedFd,
        name: OsString,
        /// What is there now.
        old: Option<Stat>,
        /// A file without a name in that directory, where the file system knows such a thing.
        nameless: Option<File>,
    },
}

impl Target {
    /// Finds out where a path leads, `-` to standard output, and whether a file can be made there. Opens pipes and devices.
    ///
    /// # Errors
    /// Why nothing can be written there.
    pub fn new(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            let out = io::stdout().as_fd().try_clone_to_owned()?;
            return Ok(Self { kind: Kind::Stream(out.into()) });
        }
        let mut path = path.to_path_buf();
        let mut base: Option<OwnedFd> = None;
        for _ in 0..LINKS {
            let (above, name) = split(&path)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let at = base.as_ref().map_or(CWD, |fd| fd.as_fd());
            let dir = rustix::fs::openat(at, &above, flags, Mode::empty())?;
            let old = match rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(old) => Some(old),
                Err(Errno::NOENT) => None,
                Err(e) => return Err(e.into()),
            };
            let kind = old.as_ref().map(|old| FileType::from_raw_mode(old.st_mode));
            match (old, kind) {
                (Some(link), Some(FileType::Symlink)) => {
                    if in_proc(&dir) {
                        return stream(&dir, &name, None);
                    }
                    ours(&dir, &link, "a symbolic link")?;
                    let target = rustix::fs::readlinkat(&dir, &name, Vec::new())?;
                    path = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
                    base = Some(dir);
                }
                (Some(old), Some(FileType::Directory)) => {
                    ours(&dir, &old, "a directory")?;
                    return Err(Errno::ISDIR.into());
                }
                (Some(old), Some(FileType::RegularFile)) => {
                    ours(&dir, &old, "a file")?;
                    return Self::whole(dir, name, Some(old));
                }
                (Some(old), _) => {
                    ours(&dir, &old, "a pipe or a device")?;
                    return stream(&dir, &name, Some(&old));
                }
                (None, _) => return Self::whole(dir, name, None),
            }
        }
        Err(Errno::LOOP.into())
    }

    fn whole(dir: OwnedFd, name: OsString, old: Option<Stat>) -> Result<Self, Error> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        // The best proof that a file can be made is one that nobody sees.
        let nameless = match rustix::fs::openat(&dir, ".", flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => Some(fd.into()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
                rustix::fs::accessat(&dir, ".", wanted, AtFlags::EACCESS)?;
                None
            }
            Err(e) => return Err(e.into()),
        };
        // Who may not write a file should not replace it either, though the directory would let him.
        if old.is_some() {
            rustix::fs::accessat(&dir, &name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        Ok(Self { kind: Kind::Whole { dir, name, old, nameless } })
    }

    /// The directory in which a file is to be made; `None`: nothing is made, or nobody knows what it is called now.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        let Kind::Whole { dir, .. } = &self.kind else { return None };
        fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// Why it is not written; what was there is there as before.
    pub fn write(self, bytes: &[u8]) -> Result<(), Error> {
        let (dir, name, old, nameless) = match self.kind {
            Kind::Stream(mut file) => return Ok(file.write_all(bytes)?),
            Kind::Whole { dir, name, old, nameless } => (dir, name, old, nameless),
        };
        let mut beside = None;
        let done = put(&dir, &name, old.as_ref(), nameless, bytes, &mut beside);
        if let (Err(_), Some(beside)) = (&done, beside) {
            let _ = rustix::fs::unlinkat(&dir, &beside, AtFlags::empty());
        }
        done
    }
}

/// Writes a file at once.
///
/// # Errors
/// Why it is not written; what was there is there as before.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Target::new(path)?.write(bytes)
}

/// User and group of whoever called sudo, if we are root through it.
#[must_use]
pub fn sudo() -> Option<(u32, u32)> {
    // The highest number is nobody's: it stands for "as it was".
    let number = |key: &str| std::env::var(key).ok()?.parse::<u32>().ok().filter(|n| *n != u32::MAX);
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (rustix::process::geteuid().is_root() && uid != 0).then_some((uid, gid))
}

/// Whether sudo seems to have called us, and does not say for whom.
#[must_use]
pub fn sudo_is_unclear() -> bool {
    let given = std::env::var_os("SUDO_UID").is_some_and(|uid| uid != "0");
    rustix::process::geteuid().is_root() && given && sudo().is_none()
}

/// Directory and name.
fn split(path: &Path) -> Result<(PathBuf, OsString), Error> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let (above, name) = match bytes.iter().rposition(|b| *b == b'/') {
        Some(at) => (&bytes[..=at], &bytes[at + 1..]),
        None => (&b"."[..], bytes),
    };
    if matches!(name, b"" | b"." | b"..") {
        return Err(Errno::ISDIR.into());
    }
    Ok((OsStr::from_bytes(above).into(), OsStr::from_bytes(name).into()))
}

fn in_proc(dir: &OwnedFd) -> bool {
    rustix::fs::fstatfs(dir).is_ok_and(|s| u64::try_from(s.f_type) == Ok(PROC))
}

/// Whether what is called so may be replaced as far as its owner goes: in a directory that everybody may write to it may be
/// somebody else's. True where nothing is there.
#[must_use]
pub fn is_ours(path: &Path) -> bool {
    let Ok((above, name)) = split(path) else { return false };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::open(&above, flags, Mode::empty()) else { return true };
    match rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => ours(&dir, &there, "file").is_ok(),
        Err(_) => true,
    }
}

/// In a directory that everybody may write to, only what is ours, the directory's owner's, or the caller's of sudo is meant
/// by whoever named it: as the kernel holds it with `fs.protected_symlinks` and its like.
fn ours(dir: &OwnedFd, there: &Stat, what: &'static str) -> Result<(), Error> {
    let above = rustix::fs::fstat(dir)?;
    let owner = there.st_uid;
    let known = owner == rustix::process::geteuid().as_raw()
        || owner == above.st_uid
        || sudo().is_some_and(|(uid, _)| uid == owner);
    if above.st_mode & SHARED != 0 && !known { Err(Error::Planted(what, owner)) } else { Ok(()) }
}

/// Opens what takes bytes as they come. `seen`: it must still be that, and no link.
fn stream(dir: &OwnedFd, name: &OsStr, seen: Option<&Stat>) -> Result<Target, Error> {
    if seen.is_none() {
        // One of our own descriptors: its place in the file is ours, too.
        let own = name.to_str().and_then(|n| n.parse::<i32>().ok()).filter(|n| *n >= 0);
        let there = rustix::fs::statat(dir, name, AtFlags::empty())?;
        if let Some(copy) = own.and_then(|n| same(n, &there)) {
            return Ok(Target { kind: Kind::Stream(copy.into()) });
        }
    }
    let nofollow = if seen.is_some() { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | nofollow;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let now = rustix::fs::fstat(&fd)?;
    if seen.is_some_and(|seen| (seen.st_dev, seen.st_ino) != (now.st_dev, now.st_ino)) {
        return Err(Errno::STALE.into());
    }
    Ok(Target { kind: Kind::Stream(fd.into()) })
}

/// Our descriptor of this number, if it is that file.
fn same(number: i32, there: &Stat) -> Option<OwnedFd> {
    // SAFETY: takes numbers; the result is new and ours, or negative.
    let copy = unsafe {
        match libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) {
            fd if fd >= 0 => <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd),
            _ => return None,
        }
    };
    let ours = rustix::fs::fstat(&copy).ok()?;
    ((ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)).then_some(copy)
}

/// A name that nobody can know beforehand.
fn fresh() -> io::Result<OsString> {
    let mut random = [0_u8; 12];
    // Of the kernel itself: a root without /dev has no /dev/urandom. So few bytes come at once.
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let mut name = String::from(".cachetop-");
    for byte in random {
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name.into())
}

/// `beside` is what has to be removed should it fail.
fn put(
    dir: &OwnedFd,
    name: &OsStr,
    old: Option<&Stat>,
    nameless: Option<File>,
    bytes: &[u8],
    beside: &mut Option<OsString>,
) -> Result<(), Error> {
    let new = fresh()?;
    let has_name = nameless.is_none();
    let mut file = match nameless {
        Some(file) => file,
        None => named(dir, &new)?,
    };
    if has_name {
        *beside = Some(new.clone());
    }
    fill(&mut file, old, bytes)?;
    if !has_name {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        match rustix::fs::linkat(CWD, link.as_str(), dir, &new, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => *beside = Some(new.clone()),
            // No /proc here, or a file system that gives no name later.
            Err(_) => {
                file = named(dir, &new)?;
                *beside = Some(new.clone());
                fill(&mut file, old, bytes)?;
            }
        }
    }
    rustix::fs::renameat(dir, &new, dir, name)?;
    *beside = None;
    // That the name has changed must reach the disk, too. The content has: where this cannot be done, nothing is lost.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(dir) = rustix::fs::openat(dir, ".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(&dir);
    }
    Ok(())
}

fn named(dir: &OwnedFd, name: &OsStr) -> Result<File, Error> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o666))?.into())
}

/// Owner, mode and content, down to the disk.
fn fill(file: &mut File, old: Option<&Stat>, bytes: &[u8]) -> Result<(), Error> {
    let own = |uid, gid| rustix::fs::fchown(&*file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    match old {
        Some(old) if old.st_uid != 0 || sudo().is_none() => {
            // Only root can give files away. Who writes into somebody else's file as another user makes it his own.
            if (old.st_uid, old.st_gid) != (file.metadata()?.uid(), file.metadata()?.gid()) {
                let _ = own(old.st_uid, old.st_gid);
            }
        }
        _ => {
            if let Some((uid, gid)) = sudo() {
                own(uid, gid)?;
            }
        }
    }
    // After the owner, whose change takes bits away.
    if let Some(old) = old {
        rustix::fs::fchmod(&*file, Mode::from_raw_mode(old.st_mode & 0o777))?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests;
