//! Lines of /proc/PID/maps, and which file on a path is the one that is mapped.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::makedev;

use crate::du::kinds;

/// A mapping of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Mapped {
    /// Its link in map_files.
    pub(super) link: String,
    /// The device of the file system: on btrfs, not the one that stat(2) gives.
    pub(super) dev: u64,
    /// The number of the file in it.
    pub(super) inode: u64,
    /// Its name, as the kernel writes it.
    pub(super) path: Vec<u8>,
}

impl Mapped {
    /// Reads a line; `None` for memory that is no file's.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.splitn(6, |b| *b == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let (range, _rights, _offset, dev, inode) = (word()?, word()?, word()?, word()?, word()?);
        let (major, minor) = dev.split_once(':')?;
        let number = |hex| u32::from_str_radix(hex, 16).ok();
        let dev = makedev(number(major)?, number(minor)?);
        let inode = inode.parse().ok().filter(|n| *n != 0)?;
        let path = words.next().unwrap_or_default().trim_ascii_start().to_vec();
        Some(Self { link: link_name(range), dev, inode, path })
    }

    /// Whether it is mapped from something that has no pages of its own, or no file.
    pub(super) fn pseudo(&self) -> bool {
        let begins = |with: &str| self.path.starts_with(with.as_bytes());
        // Without a slash: anon_inode:[io_uring], socket:[1].
        !begins("/") || ["/proc/", "/sys/", "/dev/dri/", "/dmabuf:", "/[aio]"].into_iter().any(begins)
    }

    /// Names that it may have: a line break is written as `\012`, and so is that text itself.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let plain = PathBuf::from(OsString::from_vec(self.path.clone()));
        let mut decoded = Vec::new();
        let mut rest = &self.path[..];
        while let Some((first, more)) = rest.split_first() {
            if let Some(after) = rest.strip_prefix(br"\012") {
                decoded.push(b'\n');
                rest = after;
            } else {
                decoded.push(*first);
                rest = more;
            }
        }
        let decoded = PathBuf::from(OsString::from_vec(decoded));
        if decoded == plain { vec![plain] } else { vec![plain, decoded] }
    }

    /// Whether a path leads to the file that is mapped.
    pub(super) fn is(&self, path: &Path) -> bool {
        let Ok(meta) = std::fs::metadata(path) else { return false };
        // stat(2) tells of a device for each subvolume of btrfs, maps of the one that all of them share.
        let btrfs = || rustix::fs::statfs(path).is_ok_and(|s| u64::try_from(s.f_type) == Ok(kinds::BTRFS));
        meta.ino() == self.inode && (meta.dev() == self.dev || btrfs())
    }
}

/// `00400000-00401000` of maps is `400000-401000` in map_files.
fn link_name(range: &str) -> String {
    let bare = |n: &str| match n.trim_start_matches('0') {
        "" => "0".to_owned(),
        n => n.to_owned(),
    };
    range.split_once('-').map_or_else(|| range.to_owned(), |(a, b)| format!("{}-{}", bare(a), bare(b)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn line(dev: u64, inode: u64, path: &[u8]) -> Vec<u8> {
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let head = format!("00400000-00401000 r--s 00000000 {major:02x}:{minor:02x} {inode}      ");
        [head.as_bytes(), path].concat()
    }

    #[test]
    fn names_of_links() {
        assert_eq!(link_name("00400000-00401000"), "400000-401000");
        assert_eq!(link_name("7f00-7f10"), "7f00-7f10");
        assert_eq!(link_name("00000000-00001000"), "0-1000");
    }

    #[test]
    fn what_is_no_file_is_left_out() {
        assert_eq!(Mapped::parse(b"7f00-7f10 rw-p 00000000 00:00 0 "), None);
        assert_eq!(Mapped::parse(b"7ffe-7fff rw-p 00000000 00:00 0      [stack]"), None);
        assert_eq!(Mapped::parse(b"rubbish"), None);
        for path in ["anon_inode:[io_uring]", "socket:[12]", "/dmabuf:", "/sys/devices/resource0"] {
            assert!(Mapped::parse(&line(1, 7, path.as_bytes())).unwrap().pseudo(), "{path}");
        }
        for path in ["/memfd:x (deleted)", "/SYSV00000000 (deleted)", "/system/x", "/a b"] {
            assert!(!Mapped::parse(&line(1, 7, path.as_bytes())).unwrap().pseudo(), "{path}");
        }
    }

    #[test]
    fn a_name_is_the_file_only_with_its_number_and_its_device() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a\nb");
        std::fs::write(&path, "x").unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let written = path.to_str().unwrap().replace('\n', r"\012");
        let mapped = Mapped::parse(&line(meta.dev(), meta.ino(), written.as_bytes())).unwrap();
        assert_eq!(mapped.names(), [PathBuf::from(&written), path.clone()]);
        assert!(mapped.is(&path) && !mapped.is(Path::new(&written)) && !mapped.is(dir.path()));
        let other = Mapped { dev: meta.dev() + 1, ..mapped.clone() };
        let btrfs = rustix::fs::statfs(&path).unwrap().f_type as u64 == kinds::BTRFS;
        assert_eq!(other.is(&path), btrfs, "another device");
        // What is no UTF-8 is a name as well.
        let bytes = Mapped::parse(&line(1, 7, b"/a\xff b")).unwrap();
        assert_eq!(bytes.path, b"/a\xff b");
    }
}
