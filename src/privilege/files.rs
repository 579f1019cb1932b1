//! Landlock: what a process may write and run, whoever it is.

use std::io;
use std::path::Path;

use landlock::ABI;
use landlock::AccessFs;
use landlock::PathBeneath;
use landlock::PathFd;
use landlock::Ruleset;
use landlock::RulesetAttr as _;
use landlock::RulesetCreatedAttr as _;
use landlock::RulesetStatus;

/// The newest version whose rights we name: truncation (3) and ioctls on devices (5) with them.
const NEWEST: ABI = ABI::V5;

/// What this kernel has of it.
///
/// # Errors
/// Why it has nothing.
pub(super) fn version() -> io::Result<libc::c_long> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const VERSION: u32 = 1;
    // SAFETY: with this flag, no memory is read.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    if version > 0 {
        return Ok(version);
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::ENOSYS) => io::Error::other("this kernel does not have it (from 5.13)"),
        Some(libc::EOPNOTSUPP) => io::Error::other("this kernel was started without it (lsm=landlock)"),
        _ => error,
    })
}

/// From here on this thread, and those that it begins, may make, write and remove files only in these directories, and run no
/// program. Reading stays as it is, and so does what is open already. `false`: the kernel is older than some of the rights.
///
/// # Errors
/// When the kernel has nothing of the kind, or refuses.
pub(super) fn confine(writes: &[&Path]) -> io::Result<bool> {
    version()?;
    let rights = AccessFs::from_write(NEWEST) | AccessFs::Execute;
    let bounded = || -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let mut rules = Ruleset::default().handle_access(rights)?.create()?;
        for directory in writes {
            let below = AccessFs::from_write(NEWEST);
            rules = rules.add_rule(PathBeneath::new(PathFd::new(directory)?, below))?;
        }
        Ok(rules.restrict_self()?.ruleset)
    };
    match bounded() {
        Ok(status) => Ok(status == RulesetStatus::FullyEnforced),
        Err(e) => Err(io::Error::other(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::text::outfile;

    #[test]
    fn only_what_is_named_is_written_and_nothing_is_run() {
        // Where the kernel has none, that is said, and nothing is bounded.
        if let Err(e) = version() {
            assert_eq!(confine(&[]).unwrap_err().to_string(), e.to_string());
            return;
        }
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (here, there) = (inside.path().to_owned(), outside.path().to_owned());
        fs::write(there.join("file"), "old").unwrap();
        let tried = move || {
            super::super::keep(&[]).unwrap();
            confine(&[&here]).unwrap();
            // As recordings and files for node_exporter are made, and replaced.
            for text in ["one", "two"] {
                outfile::write(&here.join("file"), text.as_bytes()).unwrap();
            }
            fs::rename(here.join("file"), here.join("other")).unwrap();
            fs::write(here.join("file"), "more").unwrap();
            fs::remove_file(here.join("file")).unwrap();
            assert_eq!(fs::read(here.join("other")).unwrap(), b"two");
            let refused = |e: io::Error| assert_eq!(e.kind(), io::ErrorKind::PermissionDenied, "{e}");
            refused(fs::write(there.join("file"), "new").unwrap_err());
            refused(fs::write(there.join("new"), "new").unwrap_err());
            refused(fs::remove_file(there.join("file")).unwrap_err());
            refused(Command::new("/bin/true").spawn().unwrap_err());
            assert_eq!(fs::read(there.join("file")).unwrap(), b"old");
            assert!(confine(&[&there.join("not there")]).is_err());
        };
        std::thread::spawn(tried).join().unwrap();
    }
}
