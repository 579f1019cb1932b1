//! Files that show up in several places though their pages are those of one inode: below overlay mounts, whose files are
//! those of a layer, and below bind mounts.
//!
//! An overlay mount says which directories its layers are. The first of them that has a file by the same path is where its
//! pages are, if size and time agree. Where layers are out of reach (mounted elsewhere, or not ours to look into), or a file
//! may have its data in another layer than its name (`metacopy`), that is not known.

mod operands;
mod roots;

use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::CString;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Statx;
use rustix::fs::StatxFlags;

use super::open;
use super::opening;
use super::opening::Seen;
use crate::files::Mount;
use crate::files::unescape_path;
use crate::procfs;

pub(super) use operands::Last;
pub(super) use operands::Operands;

/// The layers of one overlay file system, the uppermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overlay {
    layers: Vec<PathBuf>,
    /// Where it is mounted, and which directory of it.
    points: Vec<(PathBuf, PathBuf)>,
}

/// A directory of an overlay file system: its path there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    overlay: Arc<Overlay>,
    below: PathBuf,
}

/// What the mounts say of files with several places.
#[derive(Debug, Default)]
pub struct Layers {
    overlays: HashMap<u64, Arc<Overlay>>,
    /// Directories and files that are mounted, and layers: what may be seen again.
    again: HashSet<(u64, u64)>,
    /// Layers below or above what is walked.
    layers: HashSet<(u64, u64)>,
    /// Where file systems are mounted that are mounted elsewhere as well.
    bound: HashSet<PathBuf>,
    /// Layers, wherever they are.
    below: Vec<PathBuf>,
    /// Roots of processes whose mounts are known, too.
    roots: HashSet<PathBuf>,
}

impl Layers {
    /// What the mounts of this process say now, for a walk below these paths.
    #[must_use]
    pub fn here(operands: &[PathBuf]) -> Self {
        let mut layers = Self::mounts();
        layers.add_roots(layers.new_roots(operands.iter().map(PathBuf::as_path)));
        let near = Operands::default();
        let plain = |path: &PathBuf| {
            fs::symlink_metadata(path).map_or(true, |meta| !meta.is_dir() && !meta.is_symlink())
        };
        operands.iter().for_each(|path| near.add(path, plain(path), &layers, &mut Last::default()));
        layers.near(near);
        layers
    }

    /// What the mounts of this process say now. Nothing on them is asked for.
    pub(super) fn mounts() -> Self {
        Self::parse(&procfs::mounts().unwrap_or_default())
    }

    /// The roots of processes (`/proc/PID/root`) below which some of these lie, and whose mounts are not known yet.
    pub(super) fn new_roots<'a>(&self, operands: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
        operands.filter_map(roots::of).filter(|root| !self.roots.contains(root)).collect()
    }

    /// Adds the mounts of the processes that have these roots.
    pub(super) fn add_roots(&mut self, roots: Vec<PathBuf>) {
        for root in roots {
            if !self.roots.insert(root.clone()) {
                continue;
            }
            if let Some(proc) = root.parent() {
                self.merge(Self::read(proc), &root);
            }
        }
    }

    /// Adds what the mounts of another mount namespace say, whose root is this directory.
    fn merge(&mut self, other: Self, root: &Path) {
        let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
        for (dev, theirs) in other.overlays {
            let points = theirs.points.iter().map(|(point, of)| (below(point), of.clone()));
            let ours = self
                .overlays
                .entry(dev)
                .or_insert_with(|| Arc::new(Overlay { layers: theirs.layers.clone(), points: Vec::new() }));
            Arc::make_mut(ours).points.extend(points);
        }
        self.bound.extend(other.bound.iter().map(|path| below(path)));
        self.below.extend(other.below);
    }

    /// Whether it matters where what is walked lies.
    pub(super) fn matter(&self) -> bool {
        !self.bound.is_empty() || !self.below.is_empty()
    }

    /// Looks for what may be met again while these are walked. Nothing else is asked for: a server may be gone.
    pub(super) fn near(&mut self, operands: Operands) {
        let near = operands.near();
        let of = |path: &PathBuf| near.to(path).then(|| inode_of(path)).flatten();
        self.layers = self.below.iter().filter_map(of).collect();
        self.again = self.bound.iter().filter_map(of).chain(self.layers.iter().copied()).collect();
    }

    fn parse(mountinfo: &str) -> Self {
        let mut overlays: HashMap<u64, Overlay> = HashMap::new();
        let mounts: Vec<(Mount, &str)> =
            mountinfo.lines().filter_map(|line| Some((Mount::parse(line)?, line))).collect();
        // Its root and where it is mounted, byte for byte.
        let path = |line: &str, word| unescape_path(line.split(' ').nth(word).unwrap_or_default());
        let mut times: HashMap<_, usize> = HashMap::new();
        // Containers share most of their layers.
        let mut known: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
        for (mount, line) in &mounts {
            *times.entry(mount.dev).or_default() += 1;
            if mount.kind == "overlay" {
                let dev = u64::from(mount.dev.major) << 32 | u64::from(mount.dev.minor);
                let overlay = overlays.entry(dev).or_insert_with(|| Overlay {
                    layers: layers(line.rsplit(' ').next().unwrap_or(""), &mut known),
                    points: Vec::new(),
                });
                overlay.points.push((path(line, 4), path(line, 3)));
            }
        }
        let bound = mounts.iter().filter(|(m, _)| times.get(&m.dev).is_some_and(|n| *n > 1));
        Self {
            again: HashSet::new(),
            layers: HashSet::new(),
            bound: bound.map(|(_, line)| path(line, 4)).collect(),
            below: known.into_values().flatten().collect(),
            roots: HashSet::new(),
            overlays: overlays.into_iter().map(|(dev, o)| (dev, Arc::new(o))).collect(),
        }
    }

    /// What the mounts of a process say; none if it is gone or not ours to ask.
    #[must_use]
    pub fn read(proc: &Path) -> Self {
        Self::parse(&procfs::mounts_of(proc).unwrap_or_default())
    }

    /// The file of a layer that a file is which is named, opened.
    pub(super) fn real(&self, path: &Path, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        self.overlays.get(&open::dev(stat))?;
        self.real_at(&roots::whole(path).ok()?, stat)
    }

    /// The same, by its path in the mount namespace whose mounts these are.
    pub(super) fn real_at(&self, path: &Path, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        let place = self.at(open::dev(stat), path.parent()?)?;
        place.real(path.file_name()?, stat)
    }

    /// What a name stands for. A file of an overlay mount stands for that of a layer.
    pub(super) fn seen(&self, path: &Path) -> Option<Seen> {
        let seen = opening::seen(path)?;
        if !seen.kind.is_file() || !self.overlaid(seen.inode.0) {
            return Some(seen);
        }
        let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).ok();
        let real = stat.and_then(|stat| self.real(path, &stat));
        Some(Seen { inode: real.map_or(seen.inode, |(_, real)| open::inode(&real)), ..seen })
    }

    /// Whether a file or directory may be met again under another path, though it has one name.
    pub(super) fn again(&self, inode: (u64, u64)) -> bool {
        !self.again.is_empty() && self.again.contains(&inode)
    }

    /// Whether a path lies in a layer of an overlay mount.
    pub(super) fn in_layer(&self, path: &Path) -> bool {
        let Ok(path) = roots::whole(path) else { return false };
        self.overlays.values().any(|o| o.layers.iter().any(|l| path.starts_with(l)))
    }

    /// Whether a directory is a layer.
    pub(super) fn is_layer(&self, inode: (u64, u64)) -> bool {
        !self.layers.is_empty() && self.layers.contains(&inode)
    }

    /// Whether files of an overlay mount may be those of another, too.
    pub(super) fn shared(&self) -> bool {
        self.overlays.len() > 1
    }

    /// Whether a file system is an overlay.
    pub(super) fn overlaid(&self, dev: u64) -> bool {
        self.overlays.contains_key(&dev)
    }

    /// A directory of an overlay file system, by where it was found.
    pub(super) fn place(&self, dev: u64, path: &Path) -> Option<Place> {
        self.overlays.get(&dev)?;
        self.at(dev, &roots::whole(path).ok()?)
    }

    /// The same, by its path in the mount namespace whose mounts these are.
    pub(super) fn at(&self, dev: u64, path: &Path) -> Option<Place> {
        let overlay = self.overlays.get(&dev)?;
        let below = overlay.points.iter().filter_map(|(point, root)| {
            let below = root.join(path.strip_prefix(point).ok()?);
            Some((point.as_os_str().len(), below.strip_prefix("/").ok()?.to_owned()))
        });
        let (_, below) = below.max_by_key(|(length, _)| *length)?;
        Some(Place { overlay: Arc::clone(overlay), below })
    }
}

impl Place {
    /// A directory below.
    pub(super) fn child(&self, name: &OsStr) -> Self {
        Self { overlay: Arc::clone(&self.overlay), below: self.below.join(name) }
    }

    /// The file of a layer that a file of this directory is, opened.
    pub(super) fn real(&self, name: &OsStr, stat: &Statx) -> Option<(OwnedFd, Statx)> {
        let below = self.below.join(name);
        for layer in &self.overlay.layers {
            let path = layer.join(&below);
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            match rustix::fs::statx(CWD, &path, flags, StatxFlags::BASIC_STATS) {
                Ok(real) if same(&real, stat) => {
                    let path = CString::new(path.into_os_string().into_encoded_bytes()).ok()?;
                    let fd = open::below(CWD, &path).ok()?;
                    let opened =
                        rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).ok()?;
                    return (open::inode(&opened) == open::inode(&real)).then_some((fd, opened));
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                // Removed there, changed meanwhile, or not ours to look at.
                _ => return None,
            }
        }
        None
    }
}

/// Whether what a layer has is what the overlay shows.
fn same(real: &Statx, shown: &Statx) -> bool {
    let time = |s: &Statx| (s.stx_mtime.tv_sec, s.stx_mtime.tv_nsec);
    FileType::from_raw_mode(real.stx_mode.into()) == FileType::RegularFile
        && (real.stx_mode, real.stx_size, time(real)) == (shown.stx_mode, shown.stx_size, time(shown))
}

fn inode_of(path: &Path) -> Option<(u64, u64)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    Some(open::inode(&rustix::fs::statx(CWD, path, flags, StatxFlags::BASIC_STATS).ok()?))
}

/// The layers that options of an overlay mount name, as mountinfo writes them. None where data may lie in another layer
/// than the name.
fn layers(options: &str, known: &mut HashMap<PathBuf, Option<PathBuf>>) -> Vec<PathBuf> {
    let options: Vec<(&str, &str)> = options.split(',').filter_map(|o| o.split_once('=')).collect();
    let set = |key| options.iter().rev().find(|(k, _)| *k == key).map(|(_, value)| *value);
    // What is the default is not shown.
    let metacopy = set("metacopy").map_or_else(metacopy_by_default, |value| value == "on");
    let data_only = set("datadir+").is_some() || set("lowerdir").is_some_and(|dirs| dirs.contains("::"));
    if metacopy || data_only {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (key, value) in &options {
        match *key {
            "upperdir" => out.insert(0, unescape_path(value)),
            "lowerdir" => out.extend(split(&unescape_path(value))),
            "lowerdir+" => out.push(unescape_path(value)),
            _ => {}
        }
    }
    // Where relative paths began is not told. Engines of containers mount in the directory above that of the upper layer.
    let upper = options.iter().find(|(key, _)| *key == "upperdir").map(|(_, value)| unescape_path(value));
    let base = upper.as_deref().and_then(|u| u.parent()?.parent()).filter(|b| b.is_absolute());
    out.into_iter()
        .map(|layer| match base {
            Some(base) if layer.is_relative() => base.join(layer),
            _ => layer,
        })
        // One that cannot be looked at: what it has might be what is shown.
        .map(|layer| known.entry(layer).or_insert_with_key(|layer| fs::canonicalize(layer).ok()).clone())
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default()
}

fn metacopy_by_default() -> bool {
    fs::read_to_string("/sys/module/overlay/parameters/metacopy").is_ok_and(|text| text.starts_with('Y'))
}

/// Directories between colons; one that belongs to a name has a backslash before it.
fn split(text: &Path) -> impl Iterator<Item = PathBuf> {
    let mut out = vec![Vec::new()];
    let mut bytes = text.as_os_str().as_bytes().iter();
    while let Some(byte) = bytes.next() {
        match (byte, out.last_mut()) {
            (b':', _) => out.push(Vec::new()),
            (b'\\', Some(last)) => last.extend(bytes.next()),
            (byte, Some(last)) => last.push(*byte),
            (_, None) => {}
        }
    }
    out.into_iter().filter(|dir| !dir.is_empty()).map(|dir| OsString::from_vec(dir).into())
}

#[cfg(test)]
mod tests;
