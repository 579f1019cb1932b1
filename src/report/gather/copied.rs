//! What overlayfs copied to its upper layer while a run went on: a file of a layer below that is opened to be written, or
//! given another owner, is copied first. The copy is made in a directory of overlayfs's own, under a number, and that is what it
//! was called when its pages became dirty.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::used::Used;
use crate::files::Key;
use crate::files::Layers;
use crate::files::Mounts;

/// Files that are asked for their copies, at most.
const ASKED: usize = 4096;

/// What a copy is called now, and its original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) from: String,
    pub(super) to: String,
}

fn is_numbered(used: &Used) -> bool {
    used.file.name.rsplit('/').next().is_some_and(|name| name.starts_with('#'))
}

/// The copies among the files of a run: each is the file that lies in the upper layer by now where its original, of which the
/// run has pages as well, lies in one below.
pub(super) fn find(files: &[Used], mounts: &Mounts) -> HashMap<Key, Copied> {
    let mut out = HashMap::new();
    // Of most runs there is nothing to be asked.
    if !files.iter().any(is_numbered) {
        return out;
    }
    let all: Vec<Layers> = mounts.overlays().filter_map(Layers::of).map(Layers::resolved).collect();
    let made = |layers: &Layers| -> HashMap<u64, Key> {
        let numbered = files.iter().filter(|used| is_numbered(used));
        let made = numbered.filter(|used| mounts.path(&used.file).is_some_and(|p| layers.makes(&p)));
        made.map(|used| (used.file.inode, used.file.key())).collect()
    };
    for layers in all {
        let made = made(&layers);
        if made.is_empty() {
            continue;
        }
        for used in files.iter().take(ASKED) {
            let Some(from) = mounts.path(&used.file) else { continue };
            let Some(to) = layers.upper_of(&from) else { continue };
            let copy = fs::symlink_metadata(&to).ok().and_then(|meta| made.get(&meta.ino()));
            if let Some(key) = copy {
                out.insert(*key, Copied { from, to });
            }
        }
    }
    out
}
