//! Where paths of other processes lead.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::du::layers::Layers;

/// Where the paths of a process begin, if they mean something else than ours.
///
/// The kernel gives paths as seen from our root, also those of a process that has changed its own root; only what lies
/// in another mount namespace has no path from there, and is named from the root of that.
pub(super) struct Place {
    pub(super) root: Option<(PathBuf, PathBuf)>,
    pub(super) layers: Arc<Layers>,
}

/// What the mounts of each mount namespace say, by the namespace.
pub(super) type Spaces = HashMap<Option<PathBuf>, Arc<Layers>>;

impl Place {
    pub(super) fn new(proc: &Path, spaces: &mut Spaces) -> Self {
        let link = |p: &Path, what: &str| fs::read_link(p.join(what)).ok();
        let (own, theirs) = (link(Path::new("/proc/self"), "ns/mnt"), link(proc, "ns/mnt"));
        let differs = theirs.as_ref().is_some_and(|theirs| own.as_ref().is_none_or(|ours| ours != theirs));
        let root = || link(proc, "root").unwrap_or_else(|| "/".into());
        let of = || Arc::new(Layers::read(if differs { proc } else { Path::new("/proc/self") }));
        let layers = Arc::clone(spaces.entry(theirs.filter(|_| differs)).or_insert_with(of));
        Self { root: differs.then(|| (proc.join("root"), root())), layers }
    }

    /// A path that we can use.
    pub(super) fn name(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some((prefix, root)) if path.is_absolute() => {
                let below = path.strip_prefix(root).or_else(|_| path.strip_prefix("/"));
                prefix.join(below.unwrap_or(path))
            }
            _ => path.to_path_buf(),
        }
    }
}
