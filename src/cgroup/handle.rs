//! The path of a cgroup by its id, which is the handle of its directory: three system calls, however many there are.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

/// `FILEID_KERNFS`: the id alone.
const FILEID_KERNFS: libc::c_int = 0xfe;
/// File systems of cgroups, version 1 and 2.
const MAGIC: [i64; 2] = [0x27_e0eb, 0x6367_7270];

/// `struct file_handle` with a handle of eight bytes.
#[repr(C)]
struct Handle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    id: u64,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Its directory.
    Path(PathBuf),
    /// There is no such cgroup any more.
    Gone,
    /// The kernel does not say: not root enough, or not a file system of cgroups.
    Refused,
}

fn is_cgroupfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| MAGIC.contains(&stat.f_type))
}

/// The directory of a cgroup, as it is seen through this mount.
pub(super) fn look_up(mount: &Path, id: u64) -> Answer {
    if !is_cgroupfs(mount) {
        return Answer::Refused;
    }
    let Ok(root) = File::open(mount) else { return Answer::Refused };
    let mut handle = Handle { bytes: 8, kind: FILEID_KERNFS, id };
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the handle is as long as it says, and the descriptor is open.
    let fd = unsafe { libc::open_by_handle_at(root.as_raw_fd(), (&raw mut handle).cast(), flags) };
    if fd < 0 {
        return match io::Error::last_os_error().raw_os_error() {
            Some(libc::ESTALE) => Answer::Gone,
            _ => Answer::Refused,
        };
    }
    // SAFETY: the kernel has just handed out this descriptor to us alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    match fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())) {
        // Removed between the two calls: the kernel says so at the end.
        Ok(path) if path.as_os_str().as_bytes().ends_with(b" (deleted)") => {
            // Or that is its name.
            let there = fs::symlink_metadata(&path).is_ok_and(|at| at.ino() == id);
            if there { Answer::Path(path) } else { Answer::Gone }
        }
        Ok(path) => Answer::Path(path),
        Err(_) => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_directory_of_another_kind_is_refused() {
        assert_eq!(look_up(Path::new("/proc"), 1), Answer::Refused);
        assert_eq!(look_up(Path::new("/no/such/mount"), 1), Answer::Refused);
    }

    #[test]
    fn a_cgroup_is_found_by_its_number() {
        let mount = Path::new("/sys/fs/cgroup");
        let Ok(root) = fs::metadata(mount) else { return };
        let answer = look_up(mount, root.ino());
        // Only root may ask.
        assert!(matches!(&answer, Answer::Refused) || answer == Answer::Path(mount.into()), "{answer:?}");
        if answer == Answer::Refused {
            return;
        }
        // Anybody to whom a part of the tree was given can call one so.
        let path = mount.join(format!("of-{}-(deleted) (deleted)", std::process::id()));
        if fs::create_dir(&path).is_err() {
            return;
        }
        let id = fs::metadata(&path).unwrap().ino();
        let there = look_up(mount, id);
        fs::remove_dir(&path).unwrap();
        assert_ne!(look_up(mount, id), Answer::Path(path.clone()));
        assert_eq!(there, Answer::Path(path));
    }
}
