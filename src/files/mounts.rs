//! Mounts, which give files their paths, and the names of devices.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use super::Dev;
use super::File;
use super::Named;
use crate::procfs;

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The device of the file system.
    pub dev: Dev,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Where.
    pub point: String,
    /// Type of the file system.
    pub kind: String,
    /// What is mounted: often a device.
    pub source: String,
    /// Options of the file system.
    pub options: String,
}

/// Undoes the octal escapes of mountinfo.
#[must_use]
pub fn unescape(text: &str) -> String {
    String::from_utf8_lossy(&unescaped(text)).into_owned()
}

/// The same, with the bytes that it has: a path.
#[must_use]
pub fn unescape_path(text: &str) -> PathBuf {
    OsString::from_vec(unescaped(text)).into()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] = rest {
            out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

impl Mount {
    /// Reads a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ');
        let mut tail = tail.split(' ');
        let id = head.next()?.parse().ok()?;
        let dev = Dev::parse(head.nth(1)?)?;
        let (root, point) = (unescape(head.next()?), unescape(head.next()?));
        let (kind, source) = (tail.next()?.to_owned(), unescape(tail.next()?));
        Some(Self { id, dev, root, point, kind, source, options: unescape(tail.next().unwrap_or("")) })
    }

    /// The path of a file of this file system below the mount point; `None` if the mount does not show it.
    fn path(&self, name: &str) -> Option<String> {
        let rest = below(name, &self.root)?;
        let point = self.point.trim_end_matches('/');
        Some(if rest.is_empty() && point.is_empty() { "/".into() } else { format!("{point}{rest}") })
    }
}

/// What is left of `path` below `dir`: empty, or with a slash at the beginning.
pub(super) fn below<'a>(path: &'a str, dir: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(dir.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The mounts of this process, or those that a record has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounts {
    list: Vec<Mount>,
    #[serde(skip)]
    devices: HashMap<Dev, String>,
    /// Of a record: the names that block devices had. `None`: the system is asked.
    blocks: Option<Vec<(Dev, Option<String>)>>,
}

impl Mounts {
    /// Reads them now.
    #[must_use]
    pub fn here() -> Self {
        Self::parse(&procfs::mounts().unwrap_or_default())
    }

    /// Reads a mountinfo text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let list = text.lines().filter_map(Mount::parse).collect();
        Self { list, devices: HashMap::new(), blocks: None }
    }

    /// The same for a record, which asks the system no more: of block devices it knows none yet.
    #[must_use]
    pub fn recorded(&self) -> Self {
        Self { list: self.list.clone(), devices: HashMap::new(), blocks: Some(Vec::new()) }
    }

    /// Types of the file systems.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|mount| mount.kind.as_str())
    }

    /// Whether both have the same mounts.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.list == other.list
    }

    /// Looks up for a record what a block device is called now, if it is one.
    pub fn add_block(&mut self, dev: Dev) {
        self.blocks.get_or_insert_default().push((dev, block_device(dev)));
    }

    /// Whether a record has looked that up.
    #[must_use]
    pub fn has_block(&self, dev: Dev) -> bool {
        self.blocks.iter().flatten().any(|(d, _)| *d == dev)
    }

    fn block_device(&self, dev: Dev) -> Option<String> {
        match &self.blocks {
            Some(blocks) => blocks.iter().find(|(d, _)| *d == dev)?.1.clone(),
            None => block_device(dev),
        }
    }

    /// Mounts of overlayfs.
    pub fn overlays(&self) -> impl Iterator<Item = &Mount> {
        self.list.iter().filter(|m| m.kind == "overlay")
    }

    /// Whether a file system is mounted here.
    #[must_use]
    pub fn knows(&self, dev: Dev) -> bool {
        self.list.iter().any(|m| m.dev == dev)
    }

    /// The mount that shows a file: the one that says most of its path, and of these the first.
    #[must_use]
    pub fn showing(&self, file: &File) -> Option<(&Mount, Option<String>)> {
        let whole = matches!(file.named, Named::Whole | Named::Replaced);
        let mut best: Option<(&Mount, Option<String>)> = None;
        for mount in self.list.iter().filter(|m| m.dev == file.dev) {
            let path = if whole { mount.path(&file.name) } else { None };
            let better = match &best {
                None => true,
                Some((_, None)) => path.is_some(),
                Some((old, Some(_))) => path.is_some() && mount.root.len() > old.root.len(),
            };
            if better {
                best = Some((mount, path));
            }
        }
        best
    }

    /// The file system's type.
    #[must_use]
    pub fn kind(&self, dev: Dev) -> Option<&str> {
        self.list.iter().find(|m| m.dev == dev).map(|m| m.kind.as_str())
    }

    /// Where a file system is mounted: the mount that shows most of it, and of these the first.
    #[must_use]
    pub fn point(&self, dev: Dev) -> Option<&str> {
        let mounts = self.list.iter().filter(|m| m.dev == dev);
        mounts.min_by_key(|m| m.root.len()).map(|m| m.point.as_str())
    }

    /// The file system that has a path.
    #[must_use]
    pub fn holding(&self, path: &str) -> Option<Dev> {
        self.above(path).map(|m| m.dev)
    }

    /// The mount next above a path, and of these the last, which hides the others.
    fn above(&self, path: &str) -> Option<&Mount> {
        let above = self.list.iter().filter(|m| below(path, &m.point).is_some());
        above.max_by_key(|m| m.point.trim_end_matches('/').len())
    }

    /// What to call a path: the file's own where a mount shows it, else what is known of its end.
    #[must_use]
    pub fn path(&self, file: &File) -> Option<String> {
        if let Some(block) = file.block {
            return self.block_device(block);
        }
        match file.named {
            Named::Not => None,
            Named::Loose => Some(file.name.clone()),
            Named::End => Some(format!("…{}", file.name)),
            Named::Whole | Named::Replaced => {
                let found = self.showing(file).and_then(|(_, path)| path);
                // Mounted elsewhere, or nowhere any more: the path inside the file system.
                Some(found.unwrap_or_else(|| format!("[{}]{}", file.dev, file.name)))
            }
        }
    }

    /// Whether this path leads to a file, by whatever mount lies above it. Of a file whose name is known at its end
    /// alone, that has to be the end of the path inside the file system.
    #[must_use]
    pub fn leads(&self, path: &str, file: &File) -> bool {
        let inside = || {
            let mount = self.above(path).filter(|m| m.dev == file.dev && file.block.is_none())?;
            Some(format!("{}{}", mount.root.trim_end_matches('/'), below(path, &mount.point)?))
        };
        let found = match file.named {
            Named::Whole | Named::Replaced => inside().is_some_and(|inside| inside == file.name),
            Named::End => inside().is_some_and(|i| i.len() > file.name.len() && i.ends_with(&file.name)),
            _ => false,
        };
        found || self.path(file).as_deref() == Some(path)
    }

    /// The device of a file system: `/dev/NAME`, else its type.
    pub fn device(&mut self, dev: Dev) -> String {
        if let Some(known) = self.devices.get(&dev) {
            return known.clone();
        }
        let mount = self.list.iter().find(|m| m.dev == dev);
        let source = mount.filter(|m| m.source.starts_with("/dev/")).map(|m| m.source.clone());
        let name = self
            .block_device(dev)
            .or(source)
            .or_else(|| mount.map(|m| m.kind.clone()))
            .unwrap_or_else(|| dev.to_string());
        self.devices.insert(dev, name.clone());
        name
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Mount> {
        self.list.iter().find(|m| m.id == id)
    }
}

/// `/dev/NAME` of a block device.
#[must_use]
pub fn block_device(dev: Dev) -> Option<String> {
    let link = fs::read_link(format!("/sys/dev/block/{dev}")).ok()?;
    Some(format!("/dev/{}", link.file_name()?.to_string_lossy().replace('!', "/")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:40 /@ /mnt/b rw shared:7 master:2 - btrfs /dev/loop3 rw,subvol=/@
31 27 0:40 /@/home /home rw - btrfs /dev/loop3 rw,subvol=/@/home
32 27 254:0 /var/lib/x /srv/with\\040blank rw - ext4 /dev/vda rw
33 27 0:50 / /m rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/u,workdir=/w
34 27 0:51 / /tmp rw - tmpfs tmpfs rw
";

    fn file(major: u32, minor: u32, name: &str, named: Named) -> File {
        let dev = Dev { major, minor };
        File { dev, inode: 5, generation: 0, block: None, name: name.into(), named }
    }

    #[test]
    fn a_path_is_that_of_the_mount_that_says_most() {
        let m = Mounts::parse(TEXT);
        let path = |major, minor, name| m.path(&file(major, minor, name, Named::Whole)).unwrap();
        assert_eq!(path(254, 0, "/etc/passwd"), "/etc/passwd");
        assert_eq!(path(254, 0, "/var/lib/x/y"), "/srv/with blank/y");
        assert_eq!(path(254, 0, "/var/lib/xyz"), "/var/lib/xyz");
        assert_eq!(path(0, 40, "/@/a"), "/mnt/b/a");
        assert_eq!(path(0, 40, "/@/home/me/x"), "/home/me/x");
        assert_eq!(path(0, 40, "/@/home"), "/home");
        // Not shown by any mount here.
        assert_eq!(path(0, 40, "/other/z"), "[0:40]/other/z");
        assert_eq!(path(9, 9, "/z"), "[9:9]/z");
        assert_eq!(m.path(&file(0, 1, "memfd:x", Named::Loose)).unwrap(), "memfd:x");
        assert_eq!(m.path(&file(254, 0, "/b/c", Named::End)).unwrap(), "…/b/c");
        assert_eq!(m.path(&file(254, 0, "", Named::Not)), None);
        assert_eq!(m.path(&file(0, 40, "/@/\u{fffd}", Named::Replaced)).unwrap(), "/mnt/b/\u{fffd}");
        assert_eq!(m.showing(&file(0, 40, "", Named::Not)).unwrap().0.point, "/mnt/b");
    }

    #[test]
    fn a_path_may_lead_by_any_mount() {
        let m = Mounts::parse(TEXT);
        let x = file(254, 0, "/var/lib/x/y", Named::Whole);
        let leads = |path, file| m.leads(path, file);
        assert!(leads("/srv/with blank/y", &x) && leads("/var/lib/x/y", &x) && !leads("/var/lib/x/z", &x));
        // Names that are too long are known at their ends.
        let end = file(254, 0, "/deep/down/f", Named::End);
        assert!(leads("/from/here/deep/down/f", &end) && !leads("/from/here/deep/down/g", &end));
        assert!(!leads("/tmp/deep/down/f", &end), "on another file system");
        assert!(!leads("/deep/down/f", &end), "that would be known as a whole");
        // What is mounted elsewhere has more above its root.
        let bound = file(254, 0, "/lib/x/deep/f", Named::End);
        assert!(leads("/srv/with blank/deep/f", &bound) && !leads("/srv/deep/f", &bound));
        // Over which something else lies, that is not it.
        let covered = Mounts::parse(&format!("{TEXT}35 27 0:77 / /var/lib/x rw - ext4 /dev/vdb rw\n"));
        assert!(!covered.leads("/var/lib/x/y", &x) && covered.leads("/srv/with blank/y", &x));
        assert!(leads("[9:9]/z", &file(9, 9, "/z", Named::Whole)));
    }

    #[test]
    fn devices_have_names() {
        let mut m = Mounts::parse(TEXT);
        assert_eq!(m.device(Dev { major: 0, minor: 51 }), "tmpfs");
        assert_eq!(m.device(Dev { major: 0, minor: 40 }), "/dev/loop3");
        assert_eq!(m.device(Dev { major: 0, minor: 999 }), "0:999");
        assert_eq!(Dev::from_kernel(254 << 20 | 3), Dev { major: 254, minor: 3 });
    }
}
