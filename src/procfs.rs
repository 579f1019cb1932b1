//! Files of /proc as text. What anybody may be called stands in them, and need not be UTF-8: the kernel cuts names of processes
//! in the middle of a letter. One such name must not hide the rest.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// A file of /proc; bytes of names that are no UTF-8 become U+FFFD.
///
/// # Errors
/// When it cannot be read.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(other) => String::from_utf8_lossy(other.as_bytes()).into_owned(),
    })
}

/// The mounts of this process; see [`mounts_of`].
///
/// # Errors
/// When they cannot be read.
pub fn mounts() -> io::Result<String> {
    mounts_of(Path::new("/proc/self"))
}

/// The mounts of a process (`/proc/PID`), as its `mountinfo` has them. Bytes of names that are no UTF-8 are written as the
/// kernel writes blanks, `\377`: so paths can be had of it as they are.
///
/// # Errors
/// When they cannot be read.
pub fn mounts_of(process: &Path) -> io::Result<String> {
    fs::read(process.join("mountinfo")).map(|bytes| escaped(&bytes))
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // To a string it cannot fail.
            let _ = write!(out, "\\{byte:03o}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_no_utf8_hides_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = b"1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:9 / /m\xff\\040\xd0 rw - tmpfs tmpfs rw\n";
        fs::write(dir.path().join("mountinfo"), mounts).unwrap();
        assert_eq!(
            mounts_of(dir.path()).unwrap(),
            "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:9 / /m\\377\\040\\320 rw - tmpfs tmpfs rw\n"
        );
        assert_eq!(text(dir.path().join("mountinfo")).unwrap().lines().count(), 2);
        assert!(text(dir.path().join("none")).is_err() && mounts_of(&dir.path().join("none")).is_err());
    }
}
