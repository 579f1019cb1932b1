//! What the kernel says of the memory of a cgroup.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::procfs;

use super::Hierarchy;

/// The memory of a cgroup and of those below it; `None` for what this kernel does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// Bytes of its files in the cache, those of tmpfs and shared memory included.
    pub file: Option<u64>,
    /// Of them on the list of the active ones.
    pub active: Option<u64>,
    /// And of the inactive ones.
    pub inactive: Option<u64>,
    /// To be written.
    pub dirty: Option<u64>,
    /// All that it is charged for: files, memory of processes, of the kernel.
    pub used: Option<u64>,
    /// What may be used, and how the path of the cgroup is called whose limit it is; `None`: there is no limit.
    pub limit: Option<(u64, String)>,
    /// Pages of files that came back after they had been evicted, ever since it was made.
    pub refaulted: Option<u64>,
    /// Microseconds in which some of its threads waited for memory, ever since.
    pub stalled: Option<u64>,
    /// Part of the last ten seconds in which some of its threads waited for memory, and all of them.
    pub pressure: Option<(f64, f64)>,
}

/// What a row has of it: what a cgroup and those below it hold of the cache, and how much they may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// As [`Memory::file`].
    pub file: Option<u64>,
    /// The lowest limit that it is under.
    pub limit: Option<u64>,
}

impl Held {
    /// Of paths in the hierarchy, one after the other. Nothing is known of what is gone.
    pub fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let mut hierarchy = None;
        let mut held = |path: &str| {
            // Asked once, and only if there is anything to be asked about.
            let hierarchy = hierarchy.get_or_insert_with(|| {
                let mountinfo = procfs::mounts().unwrap_or_default();
                Hierarchy::find(&mountinfo)
            });
            let hierarchy = hierarchy.as_ref()?;
            Some(Self::below(&directory(hierarchy, path).ok()?, hierarchy))
        };
        paths.map(|path| held(path).unwrap_or_default()).collect()
    }

    fn below(dir: &Path, hierarchy: &Hierarchy) -> Self {
        let stat = text(dir, "memory.stat").unwrap_or_default();
        let value = |name| stat.lines().find_map(|l| l.strip_prefix(name)?.parse().ok());
        Self {
            file: value("total_cache ").or_else(|| value("file ")),
            limit: limit(dir, hierarchy).map(|(bytes, _)| bytes),
        }
    }
}

impl Memory {
    /// Of a path in the hierarchy.
    ///
    /// # Errors
    /// Why nothing is known, in words.
    pub fn read(path: &str) -> Result<Self, &'static str> {
        let mountinfo = procfs::mounts().map_err(|_| "/proc cannot be read")?;
        let hierarchy = Hierarchy::find(&mountinfo).ok_or("no hierarchy of cgroups is mounted")?;
        Ok(Self::below(&directory(&hierarchy, path)?, &hierarchy))
    }

    fn below(dir: &Path, hierarchy: &Hierarchy) -> Self {
        let stat = text(dir, "memory.stat").unwrap_or_default();
        let value =
            |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        // Version 1 tells of this cgroup alone, and with `total_` of all below.
        let either =
            |v2: &str, v1: &str| -> Option<u64> { value(&format!("total_{v1}")).or_else(|| value(v2)) };
        let both = |name: &str| either(name, name);
        let pressure = text(dir, "memory.pressure").unwrap_or_default();
        let (some, full) = (pressed(&pressure, "some"), pressed(&pressure, "full"));
        Self {
            file: either("file", "cache"),
            active: both("active_file"),
            inactive: both("inactive_file"),
            dirty: either("file_dirty", "dirty"),
            used: number(dir, "memory.current").or_else(|| number(dir, "memory.usage_in_bytes")),
            limit: limit(dir, hierarchy),
            // Before 5.9 there was one counter, of files.
            refaulted: both("workingset_refault_file").or_else(|| both("workingset_refault")),
            stalled: some.map(|(_, total)| total),
            pressure: some.zip(full).map(|((some, _), (full, _))| (some, full)),
        }
    }
}

/// The directory of a path. Bytes that are no UTF-8 have become U+FFFD in it: then it is the one that would be called so.
fn directory(hierarchy: &Hierarchy, path: &str) -> Result<PathBuf, &'static str> {
    const GONE: &str = "it is gone";
    let dir = hierarchy.dir(path).ok_or("it is not below what is mounted here")?;
    if dir.is_dir() {
        return Ok(dir);
    }
    if !path.contains(char::REPLACEMENT_CHARACTER) {
        return Err(GONE);
    }
    let inside = dir.strip_prefix(&hierarchy.mount).map_err(|_| GONE)?;
    let mut found = hierarchy.mount.clone();
    for name in inside {
        let called = |entry: &fs::DirEntry| entry.file_name().to_string_lossy() == name.to_string_lossy();
        let mut same = fs::read_dir(&found).map_err(|_| GONE)?.flatten().filter(called);
        let next = same.next().ok_or(GONE)?.path();
        if same.next().is_some() {
            return Err("its name is no UTF-8, and another one's looks the same");
        }
        found = next;
    }
    Ok(found)
}

fn text(dir: &Path, name: &str) -> Option<String> {
    fs::read_to_string(dir.join(name)).ok()
}

fn number(dir: &Path, name: &str) -> Option<u64> {
    text(dir, name)?.trim().parse().ok()
}

/// The lowest of its own limit and those above it. Version 1 has a number near the largest one for none.
fn limit(dir: &Path, hierarchy: &Hierarchy) -> Option<(u64, String)> {
    const NONE: u64 = 1 << 62;
    let of = |dir: &Path| {
        let own = ["memory.max", "memory.high", "memory.limit_in_bytes"];
        own.into_iter().filter_map(|name| number(dir, name)).min().filter(|limit| *limit < NONE)
    };
    let above = dir.ancestors().take_while(|d| d.starts_with(&hierarchy.mount));
    let lowest = above.filter_map(|d| Some((of(d)?, d))).min_by_key(|(limit, _)| *limit)?;
    Some((lowest.0, hierarchy.inside(lowest.1)?))
}

/// A line of a pressure file: the part of the last ten seconds, and the sum in microseconds.
fn pressed(text: &str, kind: &str) -> Option<(f64, u64)> {
    let line = text.lines().find_map(|l| l.strip_prefix(kind)?.strip_prefix(' '))?;
    let word = |name: &str| line.split(' ').find_map(|w| w.strip_prefix(name));
    Some((word("avg10=")?.parse::<f64>().ok()? / 100.0, word("total=")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn hierarchy(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchy) {
        let top = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mount = top.path().into();
        (top, Hierarchy { mount, root: "/".into() })
    }

    #[test]
    fn a_name_that_is_no_text_is_found_if_it_is_the_only_one() {
        use std::os::unix::ffi::OsStrExt as _;
        let (top, hierarchy) = hierarchy(&[]);
        let named = |name: &[u8]| top.path().join("a").join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(named(b"b\xff")).unwrap();
        fs::create_dir_all(named(b"c")).unwrap();
        let shown = "/a/b\u{fffd}";
        assert_eq!(directory(&hierarchy, shown), Ok(named(b"b\xff")));
        assert_eq!(directory(&hierarchy, "/a/c"), Ok(named(b"c")));
        for gone in ["/a/b", "/a/\u{fffd}", "/x\u{fffd}/b"] {
            assert_eq!(directory(&hierarchy, gone), Err("it is gone"), "{gone}");
        }
        fs::create_dir_all(named(b"b\xfe")).unwrap();
        assert!(directory(&hierarchy, shown).unwrap_err().contains("looks the same"));
    }

    #[test]
    fn version_2() {
        let (top, hierarchy) = hierarchy(&[
            ("a/memory.max", "1000000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "max\n"),
            ("a/b/memory.current", "7000\n"),
            (
                "a/b/memory.stat",
                "anon 5\nfile 4096\nfile_mapped 9\nfile_dirty 3\ninactive_file 96\nactive_file 4000\nworkingset_refault_anon 8\nworkingset_refault_file 17\n",
            ),
            (
                "a/b/memory.pressure",
                "some avg10=12.50 avg60=0.00 avg300=0.00 total=1500\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=3\n",
            ),
        ]);
        let expected = Memory {
            file: Some(4096),
            active: Some(4000),
            inactive: Some(96),
            dirty: Some(3),
            used: Some(7000),
            limit: Some((1_000_000, "/a".into())),
            refaulted: Some(17),
            stalled: Some(1500),
            pressure: Some((0.125, 0.01)),
        };
        assert_eq!(Memory::below(&top.path().join("a/b"), &hierarchy), expected);
        let held = Held { file: Some(4096), limit: Some(1_000_000) };
        assert_eq!(Held::below(&top.path().join("a/b"), &hierarchy), held);
    }

    #[test]
    fn version_1_and_what_it_does_not_say() {
        let (top, hierarchy) = hierarchy(&[
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("g/memory.limit_in_bytes", "9223372036854771712\n"),
            ("g/memory.usage_in_bytes", "50\n"),
            (
                "g/memory.stat",
                "cache 1\ndirty 2\nactive_file 3\ntotal_cache 10\ntotal_dirty 20\ntotal_active_file 30\n",
            ),
        ]);
        let expected =
            Memory { file: Some(10), active: Some(30), dirty: Some(20), used: Some(50), ..Memory::default() };
        assert_eq!(Memory::below(&top.path().join("g"), &hierarchy), expected);
        assert_eq!(Held::below(&top.path().join("g"), &hierarchy), Held { file: Some(10), limit: None });
        assert_eq!(Memory::below(&top.path().join("none"), &hierarchy), Memory::default());
    }
}
