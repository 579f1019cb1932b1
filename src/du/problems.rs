//! What could not be read or known, reported once for each reason.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::io::Errno;

use super::residency::Unknown;
use super::residency::words;
use crate::text::foreign::Foreign;

/// How often, and where first.
type Reasons = BTreeMap<String, (u64, PathBuf)>;

/// What could not be read or known.
#[derive(Debug, Default)]
pub struct Problems {
    directories: Mutex<Reasons>,
    files: Mutex<Reasons>,
    twice: Mutex<Vec<PathBuf>>,
}

/// The number of an error; of one that has none, that of any trouble with a device.
pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn count(reasons: &Mutex<Reasons>, why: String, path: impl FnOnce() -> PathBuf) {
    let mut reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner);
    reasons.entry(why).or_insert_with(|| (0, path())).0 += 1;
}

fn line(what: &str, why: &str, n: u64, path: &Path) -> String {
    let path = Foreign::from(path);
    match n {
        1 => format!("{path} is {what}: {why}"),
        n => format!("{path} and {} more are {what}: {why}", n - 1),
    }
}

impl Problems {
    /// A directory, or an entry of one, that cannot be read.
    pub fn directory(&self, path: &Path, error: Errno) {
        count(&self.directories, words(&io::Error::from(error)), || path.to_path_buf());
    }

    /// A file of which nothing can be known.
    pub fn unknown(&self, why: Unknown, path: impl FnOnce() -> PathBuf) {
        count(&self.files, why.to_string(), path);
    }

    /// A directory that is named twice.
    pub fn twice(&self, path: &Path) {
        self.twice.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
    }

    /// Whether a part of what was requested is missing in the sums.
    #[must_use]
    pub fn unread(&self) -> bool {
        !self.directories.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The first line about what could not be read.
    #[must_use]
    pub fn first_unread(&self) -> Option<String> {
        let unread = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        unread.iter().next().map(|(why, (n, path))| line("not read", why, *n, path))
    }

    /// A line for each reason.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for path in self.twice.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            lines.push(format!("{} is counted already", Foreign::from(path.as_path())));
        }
        for (reasons, what) in [(&self.directories, "not read"), (&self.files, "not known")] {
            for (why, (n, path)) in reasons.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                lines.push(line(what, why, *n, path));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once() {
        let problems = Problems::default();
        assert!(problems.lines().is_empty() && !problems.unread());
        for name in ["a", "b", "c"] {
            problems.unknown(Unknown::NotReadable, || name.into());
        }
        assert!(!problems.unread());
        problems.directory(Path::new("/d"), Errno::ACCESS);
        assert!(problems.unread());
        assert_eq!(
            problems.lines(),
            ["/d is not read: permission denied", "a and 2 more are not known: permission denied"]
        );
    }
}
