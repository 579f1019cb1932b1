//! What was cached of files before a run, by the names that they had then. By its end a name may be another file's: whoever
//! asks by a name asks for a file, too.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;

use super::data::Residency;
use crate::files::Dev;
use crate::files::File;

/// A file that was asked for, and what of it was cached.
#[derive(Debug)]
struct Asked {
    dev: Dev,
    inode: u64,
    /// When it was made, where the file system tells: a number of an inode that is free is given to the next file.
    made: Option<SystemTime>,
    residency: Residency,
}

/// What is known of files, by their names.
#[derive(Debug, Default)]
pub(super) struct Beforehand(HashMap<PathBuf, Asked>);

impl Beforehand {
    /// Takes note of what is cached of the file that has this name now, on this file system; `ask`: how much that is.
    pub(super) fn note(&mut self, path: &Path, dev: Dev, ask: impl FnOnce() -> Option<Residency>) {
        let Ok(meta) = fs::metadata(path) else { return };
        let asked = |residency| Asked { dev, inode: meta.ino(), made: meta.created().ok(), residency };
        self.0.extend(ask().map(|residency| (path.to_path_buf(), asked(residency))));
    }

    /// What was cached of a file that was called so when the run used it first, if it was asked for.
    pub(super) fn of(&self, path: &Path, file: &File) -> Option<&Residency> {
        let asked = self.0.get(path)?;
        let again = || fs::metadata(path).ok().filter(|m| m.ino() == file.inode);
        let same = asked.dev == file.dev
            && asked.inode == file.inode
            && again().is_none_or(|m| m.created().ok() == asked.made);
        same.then_some(&asked.residency)
    }

    /// Whether it was another file that was asked for by this name.
    pub(super) fn is_of_another(&self, path: &Path, file: &File) -> bool {
        self.0.contains_key(path) && self.of(path, file).is_none()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::files::Named;

    const DEV: Dev = Dev { major: 254, minor: 0 };

    fn file(inode: u64, dev: Dev) -> File {
        File { dev, inode, generation: 0, block: None, name: String::new(), named: Named::Whole }
    }

    #[test]
    fn a_name_that_another_file_has_taken_says_nothing_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "old").unwrap();
        fs::write(&new, "new").unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let (first, second) = (file(inode(&old), DEV), file(inode(&new), DEV));
        let cached = || Some(Residency { cached: 1, pages: 1, pattern: None });
        let mut known = Beforehand::default();
        known.note(&old, DEV, cached);
        known.note(&new, DEV, || None);
        known.note(&dir.path().join("none"), DEV, cached);
        assert_eq!(known.of(&old, &first), cached().as_ref());
        assert!(known.of(&new, &second).is_none() && !known.is_of_another(&new, &second));
        // On another file system, where numbers begin anew.
        let elsewhere = file(first.inode, Dev { minor: 1, ..DEV });
        assert!(known.of(&old, &elsewhere).is_none() && known.is_of_another(&old, &elsewhere));
        // What it was called when it was used first; where it lies by now makes no difference.
        fs::rename(&new, &old).unwrap();
        assert!(known.of(&old, &second).is_none() && known.is_of_another(&old, &second));
        assert_eq!(known.of(&old, &first), cached().as_ref());
        fs::remove_file(&old).unwrap();
        assert_eq!(known.of(&old, &first), cached().as_ref());
    }

    #[test]
    fn a_number_that_another_file_has_got_says_nothing_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let one = file(fs::metadata(&path).unwrap().ino(), DEV);
        let mut known = Beforehand::default();
        known.note(&path, DEV, || Some(Residency::default()));
        assert!(known.of(&path, &one).is_some());
        let asked = known.0.get_mut(&path).unwrap();
        asked.made = asked.made.map(|at| at - std::time::Duration::from_secs(1));
        // Where the file system does not tell, the number is all that there is.
        assert_eq!(known.of(&path, &one).is_none(), fs::metadata(&path).unwrap().created().is_ok());
    }
}
