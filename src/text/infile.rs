//! Files that are read and that others may have put there: whatever stands at a path, nobody is made to wait.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file to read it; `None` where there is something else: a pipe would be waited for, a device has no end.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    // Neither a pipe nor a terminal makes us wait, nor becomes ours.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The same, where something else is an error like any other.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub fn regular(path: &Path) -> io::Result<File> {
    open(path)?.ok_or_else(|| io::Error::other("it is no regular file"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for other in [&path, dir.path(), Path::new("/dev/zero")] {
            assert!(open(other).unwrap().is_none(), "{}", other.display());
            assert_eq!(regular(other).unwrap_err().to_string(), "it is no regular file");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "text").unwrap();
        assert_eq!(io::read_to_string(open(&path).unwrap().unwrap()).unwrap(), "text");
    }
}
