//! Where what is walked lies, as the mounts have it.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use super::Layers;
use super::roots;

/// Where what is walked lies, put together by all threads.
#[derive(Debug, Default)]
pub(in crate::du) struct Operands(Mutex<Lie>);

#[derive(Debug, Default)]
struct Lie {
    /// Directories, and files where something is mounted.
    exact: Vec<PathBuf>,
    /// Directories that have files which are named, by the names that they were given by: a hundred thousand files of the same
    /// directories are not a million questions.
    above: HashMap<PathBuf, Arc<Above>>,
}

/// A directory that has files which are named.
#[derive(Debug)]
struct Above {
    whole: Option<PathBuf>,
    /// Whether something is mounted on one of its names.
    mounts: bool,
}

/// The directory that a thread added last: most names have the one that the name before them had.
#[derive(Debug, Default)]
pub(in crate::du) struct Last(Option<(PathBuf, Arc<Above>)>);

impl Operands {
    fn lie(&self) -> MutexGuard<'_, Lie> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a path; a `plain` one is neither a directory nor a symbolic link.
    pub(in crate::du) fn add(&self, path: &Path, plain: bool, layers: &Layers, last: &mut Last) {
        let (Some(dir), Some(name), true) = (path.parent(), path.file_name(), plain) else {
            let whole = roots::whole(path);
            self.lie().exact.extend(whole);
            return;
        };
        let above = match &last.0 {
            // By their bytes: to compare parts of paths takes longer than all else here.
            Some((known, above)) if known.as_os_str() == dir.as_os_str() => above,
            _ => &last.0.insert((dir.to_owned(), self.above(dir, layers))).1,
        };
        if let (true, Some(whole)) = (above.mounts, &above.whole) {
            let whole = whole.join(name);
            if layers.bound.contains(&whole) {
                self.lie().exact.push(whole);
            }
        }
    }

    fn above(&self, dir: &Path, layers: &Layers) -> Arc<Above> {
        if let Some(above) = self.lie().above.get(dir) {
            return Arc::clone(above);
        }
        let named = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let whole = roots::whole(named).ok();
        let mounts = whole.as_deref().is_some_and(|w| layers.bound.iter().any(|b| b.parent() == Some(w)));
        let above = Arc::new(Above { whole, mounts });
        Arc::clone(self.lie().above.entry(dir.to_owned()).or_insert(above))
    }

    /// The whole paths, once all are added.
    pub(super) fn near(self) -> Near {
        let Lie { exact, above } = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        Near { exact, above: above.into_values().filter_map(|above| above.whole.clone()).collect() }
    }
}

/// Whole paths of what is walked.
#[derive(Debug)]
pub(super) struct Near {
    exact: Vec<PathBuf>,
    above: HashSet<PathBuf>,
}

impl Near {
    /// Whether a mount or a layer has to do with them.
    pub(super) fn to(&self, path: &Path) -> bool {
        self.exact.iter().any(|o| path.starts_with(o) || o.starts_with(path))
            || self.above.iter().any(|o| o.starts_with(path))
    }
}
