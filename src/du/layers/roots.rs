//! Paths by the roots of other processes: `/proc/PID/root` leads into a container, whose mounts are others than ours.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::fs::OFlags;

/// The root of a process through which a path leads, if that has mounts of its own.
pub(super) fn of(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let mut next = || match parts.next()? {
        Component::RootDir => Some("/"),
        Component::Normal(part) => part.to_str(),
        _ => None,
    };
    if (next()?, next()?) != ("/", "proc") {
        return None;
    }
    let pid = next()?;
    if next()? != "root" || !pid.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let proc = Path::new("/proc").join(pid);
    let theirs = fs::read_link(proc.join("ns/mnt")).ok()?;
    fs::read_link("/proc/self/ns/mnt").is_ok_and(|ours| ours != theirs).then(|| proc.join("root"))
}

/// The whole path of what exists, without links; with the root through which it was named, where our own root does not
/// lead there.
pub(super) fn whole(path: &Path) -> io::Result<PathBuf> {
    let Some(root) = of(path) else { return fs::canonicalize(path) };
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // The kernel names it from the root of its own mount namespace.
    let name = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    let whole = root.join(name.strip_prefix("/").unwrap_or(&name));
    let (seen, meant) = (rustix::fs::stat(&whole), rustix::fs::fstat(&fd)?);
    if seen.is_ok_and(|seen| (seen.st_dev, seen.st_ino) == (meant.st_dev, meant.st_ino)) {
        return Ok(whole);
    }
    // A link led out of there.
    fs::canonicalize(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn roots_of_processes() {
        let own = std::process::id();
        // Ours are the mounts that are known anyway.
        for path in [
            "/proc/x/root",
            "/proc/1x/root/a",
            "/proc/self/root",
            "proc/1/root",
            "/a/proc/1/root",
            "/proc",
            "/",
        ] {
            assert_eq!(of(Path::new(path)), None, "{path}");
        }
        assert_eq!(of(&PathBuf::from(format!("/proc/{own}/root/etc"))), None);
        assert_eq!(whole(&PathBuf::from(format!("/proc/{own}/root/"))).unwrap(), Path::new("/"));
    }
}
