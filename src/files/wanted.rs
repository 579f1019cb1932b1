//! A file that is chosen: by its path, once, and then by what the kernel programs know of it.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use super::Dev;
use super::File;
use super::Named;
use super::layers::Layers;
use super::mounts::Mount;
use super::mounts::Mounts;
use super::mounts::below;

/// A file that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Device of the file system.
    pub dev: Dev,
    /// Inode number.
    pub inode: u64,
    /// Its path inside the file system, where inode numbers alone do not tell files apart (btrfs).
    pub name: Option<String>,
    /// For a block device, the device.
    pub block: Option<Dev>,
    /// Where it was found; on overlayfs in the layer below that has the data.
    pub path: PathBuf,
}

impl Wanted {
    /// Looks a path up. On overlayfs this is the file of the layer below that has the data.
    ///
    /// # Errors
    /// When there is no such file, or it is not known on which file system it or its data lies.
    pub fn new(path: &Path, mounts: &Mounts) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let meta = fs::metadata(&path)?;
        let mount = mount_of(&path, mounts)?;
        if mount.kind == "overlay" {
            // The file that overlayfs shows caches nothing: it would be 0 for ever.
            let layer = layer_below(&path, mount).ok_or_else(|| {
                io::Error::other("the layer of overlayfs that has it cannot be reached from here")
            })?;
            return Self::new(&layer, mounts);
        }
        let inside = || {
            let rest = below(path.to_str()?, &mount.point)?;
            Some(format!("{}{rest}", mount.root.trim_end_matches('/')))
        };
        let block = meta.mode() & libc::S_IFMT == libc::S_IFBLK;
        let rdev = meta.rdev();
        let block = block.then(|| Dev { major: libc::major(rdev), minor: libc::minor(rdev) });
        let name = if mount.kind == "btrfs" { inside() } else { None };
        Ok(Self { dev: mount.dev, inode: meta.ino(), name, block, path })
    }

    /// Whether this is the file.
    #[must_use]
    pub fn is(&self, file: &File) -> bool {
        match self.block {
            Some(block) => file.block == Some(block),
            None => {
                let named = |n: &String| file.named != Named::Whole || *n == file.name;
                file.dev == self.dev && file.inode == self.inode && self.name.as_ref().is_none_or(named)
            }
        }
    }
}

/// The mount that a path lies on, by the kernel's word.
///
/// # Errors
/// When the path cannot be opened, or its mount is not in the list.
pub fn mount_of<'a>(path: &Path, mounts: &'a Mounts) -> io::Result<&'a Mount> {
    let file = fs::File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = info.lines().find_map(|l| l.strip_prefix("mnt_id:")).and_then(|n| n.trim().parse().ok());
    id.and_then(|id| mounts.by_id(id)).ok_or_else(|| io::Error::other("its mount is not in mountinfo"))
}

/// Where the data of a file on overlayfs lies: the first layer that has it.
fn layer_below(path: &Path, mount: &Mount) -> Option<PathBuf> {
    let rest = path.strip_prefix(&mount.point).ok()?;
    let Layers { upper, lower, .. } = Layers::of(mount)?;
    upper.into_iter().chain(lower).map(|l| Path::new(&l).join(rest)).find(|p| p.exists())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_layer_that_has_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str| dir.path().join(p).to_str().unwrap().to_owned();
        for d in ["l1", "l2/d", "u"] {
            fs::create_dir_all(at(d)).unwrap();
        }
        fs::write(at("l2/d/f"), "").unwrap();
        let line = format!(
            "33 27 0:50 / /m rw - overlay overlay rw,lowerdir={}:{},upperdir={},workdir=/w",
            at("l1"),
            at("l2"),
            at("u")
        );
        let mount = Mount::parse(&line).unwrap();
        assert_eq!(layer_below(Path::new("/m/d/f"), &mount), Some(at("l2/d/f").into()));
        assert_eq!(layer_below(Path::new("/m/none"), &mount), None);
    }

    #[test]
    fn a_file_is_found_by_device_and_inode() {
        let mounts = Mounts::here();
        let here = std::env::current_exe().unwrap();
        let Ok(wanted) = Wanted::new(&here, &mounts) else { return };
        assert_eq!(wanted.inode, fs::metadata(&here).unwrap().ino());
        let name = wanted.name.clone().unwrap_or_default();
        let (dev, inode, named) = (wanted.dev, wanted.inode, Named::Whole);
        let same = File { dev, inode, generation: 0, block: None, name, named };
        assert!(wanted.is(&same));
        assert!(!wanted.is(&File { inode: 1, ..same }));
        assert!(Wanted::new(Path::new("/no/such/file"), &mounts).is_err());
    }
}
