//! The files that the tables are written to.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;

use crate::exit::Failure;
use crate::text::foreign::Foreign;
use crate::text::outfile;

/// What a file of Parquet begins with.
const PARQUET: [u8; 4] = *b"PAR1";

/// Makes the directory, if it is not there.
pub(super) fn directory(path: &Path) -> Result<(), Failure> {
    if path.exists() && !path.is_dir() {
        return Err(Failure::usage(format!("{} is no directory", Foreign::from(path)))
            .remedy("name a directory for the tables"));
    }
    outfile::make_directories(path).map_err(|e| outfile::Error::from(e).about_the_request(path))
}

/// A file that has no name yet, or none that matters.
pub(super) struct New {
    file: File,
    path: PathBuf,
    /// Its name meanwhile, where the file system knows no files without.
    beside: PathBuf,
    named: bool,
}

/// Nothing, an empty file or a table may be replaced.
fn replaceable(path: &Path) -> Result<(), Failure> {
    let name = Foreign::from(path);
    let meta = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Failure::failed(format!("cannot look at {name}: {e}"))),
        Ok(meta) => meta,
    };
    // A link is not followed, and a pipe is not opened.
    let table = || {
        let mut begin = [0; PARQUET.len()];
        File::open(path).and_then(|mut f| f.read_exact(&mut begin)).is_ok() && begin == PARQUET
    };
    if meta.is_file() && (meta.len() == 0 || table()) {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} is there and no table: it is not replaced"))
        .remedy("remove it, or name another directory"))
}

impl New {
    /// Makes it. Nobody but its owner may read it: names and paths are in it.
    pub fn make(directory: &Path, name: &str) -> Result<Self, Failure> {
        let path = directory.join(name);
        replaceable(&path)?;
        let beside = directory.join(format!(".{name}.{}", std::process::id()));
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        // Its name comes by way of /proc, which a root may lack.
        let proc = Path::new("/proc/self/fd").is_dir();
        let (file, named) = match rustix::fs::open(directory, OFlags::TMPFILE | flags, mode) {
            Ok(fd) if proc => (Ok(fd), false),
            _ => {
                let _ = fs::remove_file(&beside);
                let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                (rustix::fs::open(&beside, new | flags, mode), true)
            }
        };
        let file = file.map_err(|e| outfile::Error::from(e).about(&path))?;
        Ok(Self { file: file.into(), path, beside, named })
    }

    /// Where to write.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Puts it in its place.
    pub fn name(mut self, file: &File) -> io::Result<()> {
        if !self.named {
            let _ = fs::remove_file(&self.beside);
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, link.as_str(), CWD, &self.beside, AtFlags::SYMLINK_FOLLOW)?;
            self.named = true;
        }
        fs::rename(&self.beside, &self.path)?;
        self.named = false;
        Ok(())
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if self.named {
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Brings it to the disk, and out of the cache that is looked at; under sudo it belongs to who called.
pub(super) fn settle(file: &File) -> io::Result<()> {
    if let Some((uid, gid)) = outfile::sudo() {
        // Who has given back what this needs keeps the file.
        let _ = std::os::unix::fs::fchown(file, Some(uid), Some(gid));
    }
    file.sync_all()?;
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}
