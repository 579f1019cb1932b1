//! Finding tracefs, mounted or not. Classic tracepoints need it for their ids.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;

/// A place where `events/CATEGORY/NAME/id` can be read.
#[derive(Debug)]
pub struct Tracefs {
    path: String,
    /// Keeps a mount alive that has no place in the file system.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is, for people.
    pub fn describe(&self) -> String {
        if self._mount.is_some() { "not mounted; a private mount is used".into() } else { self.path.clone() }
    }

    /// Finds tracefs where it is usually mounted, else makes a mount that only this process can see and that
    /// is gone when it ends, however it ends.
    ///
    /// # Errors
    /// When there is none and none can be mounted, in words.
    pub fn find() -> Result<Self, String> {
        for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if fs::metadata(format!("{path}/events/filemap")).is_ok() {
                return Self { path: path.into(), _mount: None }.readable();
            }
        }
        let mount = detached("tracefs")
            .map_err(|e| format!("not mounted, and a private mount failed{}: {e}", because(&e)))?;
        let path = format!("/proc/self/fd/{}", mount.as_raw_fd());
        if fs::metadata(format!("{path}/events/filemap")).is_err() {
            return Err("tracefs has no events/filemap".into());
        }
        Self { path, _mount: Some(mount) }.readable()
    }

    /// It may be there and locked.
    fn readable(self) -> Result<Self, String> {
        match self.id("filemap", "mm_filemap_add_to_page_cache") {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(format!("{} cannot be read{}: {e}", self.describe(), because(&e)))
            }
            _ => Ok(self),
        }
    }

    /// Where this process finds it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The id of a tracepoint.
    ///
    /// # Errors
    /// When the kernel has no such tracepoint.
    pub fn id(&self, category: &str, name: &str) -> io::Result<u64> {
        let text = fs::read_to_string(format!("{}/events/{category}/{name}/id", self.path))?;
        text.trim().parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }
}

/// What stands behind an error of tracefs.
fn because(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " (kernel lockdown, a security module, or a container without CAP_SYS_ADMIN)"
        }
        Some(libc::ENODEV) => " (a kernel without CONFIG_FTRACE)",
        _ => "",
    }
}

/// Mounts a file system without a place (fsopen, fsmount; Linux 5.2): nobody else sees it.
pub fn detached(kind: &str) -> io::Result<OwnedFd> {
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    let kind = CString::new(kind)?;
    // SAFETY: fsopen takes a string that outlives the call, and flags.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: FSCONFIG_CMD_CREATE takes no key and no value.
    let ret =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fsmount takes a descriptor and flags (FSMOUNT_CLOEXEC).
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed out this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_id_is_a_number_or_an_error(text in "[0-9]{1,25}\n?|.{0,20}") {
            let dir = tempfile::tempdir().unwrap();
            let place = dir.path().join("events/filemap/some");
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("id"), &text).unwrap();
            let tracefs = Tracefs { path: dir.path().to_str().unwrap().into(), _mount: None };
            prop_assert_eq!(tracefs.id("filemap", "some").ok(), text.trim().parse().ok());
            prop_assert_eq!(tracefs.id("filemap", "other").unwrap_err().kind(), io::ErrorKind::NotFound);
        }
    }
}
