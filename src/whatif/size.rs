//! How large the cache is, and what limits it.

use std::fs;
use std::path::Path;

use crate::cgroup;
use crate::cgroup::Hierarchy;
use crate::procfs;

/// The part of a limit from which on what others below it have cached is no trifle.
const MUCH_BESIDE: f64 = 0.05;

/// The cache that what is followed uses, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// The limit in force: its own, or that of one above it. `None`: there is none below the size of the machine.
    pub limit: Option<u64>,
    /// The cgroup above whose limit that is; `None`: it is its own.
    pub limit_of: Option<String>,
    /// Of that limit, what is taken by other things than files: memory of processes and of the kernel.
    pub others: u64,
    /// Of that limit, files of other cgroups below it.
    pub beside: u64,
    /// What is cached of files.
    pub cached: u64,
    /// What is mapped of that.
    pub mapped: u64,
}

impl Size {
    /// Asks about a cgroup, or about the machine.
    #[must_use]
    pub fn read(group: Option<&str>) -> Option<Self> {
        let memory = fs::read_to_string("/proc/meminfo").ok()?;
        let cached = kib(&memory, "Active(file)")? + kib(&memory, "Inactive(file)")?;
        let Some(path) = group.filter(|path| *path != "/") else {
            let mapped = kib(&memory, "Mapped")?.saturating_sub(kib(&memory, "Shmem")?);
            return Some(Self { cached, mapped, ..Self::default() });
        };
        let hierarchy = Hierarchy::find(&procfs::mounts().ok()?)?;
        let dir = hierarchy.dir(path)?;
        Self::below(&dir, &hierarchy, kib(&memory, "MemTotal")?)
    }

    /// Of the cgroup in this directory.
    fn below(dir: &Path, hierarchy: &Hierarchy, machine: u64) -> Option<Self> {
        let (cached, mapped) = files(dir)?;
        let limits = dir.ancestors().take_while(|d| d.starts_with(&hierarchy.mount));
        let limited = limits.filter_map(|d| Some((limit(d)?, d))).filter(|(limit, _)| *limit < machine);
        let Some((limit, by)) = limited.min_by_key(|(limit, _)| *limit) else {
            return Some(Self { cached, mapped, ..Self::default() });
        };
        let used = number(by, &["memory.current", "memory.usage_in_bytes"])?;
        let limit_of = if by == dir { None } else { Some(hierarchy.inside(by)?) };
        let all = limit_of.as_ref().and_then(|_| files(by)).map_or(cached, |(all, _)| all);
        let beside = all.saturating_sub(cached);
        let others = used.saturating_sub(cached + beside);
        Some(Self { limit: Some(limit), limit_of, others, beside, cached, mapped })
    }

    /// What the scales are relative to.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.limit.unwrap_or(self.cached)
    }

    /// Bytes of files that there would be room for; `None`: less than what other things take. Programs and libraries are mapped
    /// once, and kept by uses that nobody sees: of what is mapped, what the simulation does not hold by itself (`held`: bytes of
    /// pages that came by faults and are in its cache of now) is no room for others. What others below the same limit have cached
    /// is taken to become more and less with the limit.
    #[must_use]
    pub fn room(&self, scale: f64, held: f64) -> Option<f64> {
        let kept = (self.mapped as f64 - held).max(0.0);
        Some(self.whole(scale, scale) - kept).filter(|room| *room > 0.0)
    }

    /// Bytes of files at this scale, where those beside it have what they have now, multiplied by `beside`.
    pub(super) fn whole(&self, scale: f64, beside: f64) -> f64 {
        self.base() as f64 * scale - self.others as f64 - self.beside as f64 * beside
    }

    /// Whether others below the same limit have so much cached that it matters what they would do.
    pub(super) fn is_shared(&self) -> bool {
        self.limit.is_some_and(|limit| self.beside as f64 > limit as f64 * MUCH_BESIDE)
    }
}

/// Whether a cgroup has been removed; not where that cannot be told.
#[must_use]
pub fn is_gone(group: &str) -> bool {
    let mounts = procfs::mounts().unwrap_or_default();
    Hierarchy::find(&mounts).is_some_and(|hierarchy| is_gone_from(&hierarchy, group))
}

fn is_gone_from(hierarchy: &Hierarchy, group: &str) -> bool {
    let why = |dir: std::path::PathBuf| fs::symlink_metadata(dir).err().map(|e| e.kind());
    hierarchy.dir(group).and_then(why) == Some(std::io::ErrorKind::NotFound)
}

/// The cgroup of a process.
#[must_use]
pub fn cgroup_of(pid: u32) -> Option<String> {
    let text = procfs::text(format!("/proc/{pid}/cgroup")).ok()?;
    cgroup::of_process(&text).map(str::to_owned)
}

/// A line of `/proc/meminfo` in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    Some(rest.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The first of these files that is there and has a number.
fn number(dir: &Path, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok())
}

/// What a cgroup may use: from `memory.high` on it is made to give back.
fn limit(dir: &Path) -> Option<u64> {
    let of = |name| number(dir, &[name]);
    [of("memory.max"), of("memory.high"), of("memory.limit_in_bytes")].into_iter().flatten().min()
}

/// Bytes of files on the lists of a cgroup and of those below it, and what is mapped of them.
fn files(dir: &Path) -> Option<(u64, u64)> {
    let stat = fs::read_to_string(dir.join("memory.stat")).ok()?;
    let value =
        |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok());
    // Version 1 tells of this cgroup alone, and with `total_` of all below.
    let both = |name: &str| value(&format!("total_{name}")).or_else(|| value(name));
    // Shared memory is mapped, too, and is on other lists.
    let mapped = both("file_mapped").or_else(|| both("mapped_file")).unwrap_or(0);
    let mapped = mapped.saturating_sub(both("shmem").unwrap_or(0));
    Some((both("active_file")? + both("inactive_file")?, mapped))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MIB: u64 = 1 << 20;

    fn group(dir: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(dir).unwrap();
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
    }

    /// All of a hierarchy, in this directory.
    fn shown(mount: &Path) -> Hierarchy {
        Hierarchy { mount: mount.into(), root: "/".into() }
    }

    #[test]
    fn a_cgroup_that_was_removed_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        group(&dir.path().join("db"), &[]);
        let of = |root: &str| Hierarchy { mount: dir.path().into(), root: root.into() };
        assert!(!is_gone_from(&of("/"), "/db") && is_gone_from(&of("/"), "/other"));
        // It is not below what a container sees.
        assert!(!is_gone_from(&of("/container"), "/other"));
        assert!(!is_gone("/"));
    }

    #[test]
    fn the_lowest_limit_counts() {
        let top = tempfile::tempdir().unwrap();
        let (above, own) = (top.path().join("a"), top.path().join("a/b"));
        let stat = format!(
            "anon 5\nfile_mapped {}\nshmem {MIB}\ninactive_file {}\nactive_file {MIB}\n",
            3 * MIB,
            3 * MIB
        );
        let current = (10 * MIB).to_string();
        group(&above, &[("memory.max", &(64 * MIB).to_string()), ("memory.current", &current)]);
        group(&own, &[("memory.max", "max\n"), ("memory.current", "1"), ("memory.stat", &stat)]);
        let size = Size::below(&own, &shown(top.path()), 1 << 40).unwrap();
        let limited = Size {
            limit: Some(64 * MIB),
            limit_of: Some("/a".into()),
            others: 6 * MIB,
            beside: 0,
            cached: 4 * MIB,
            mapped: 2 * MIB,
        };
        assert_eq!(size, limited);
        assert_eq!(size.base(), 64 * MIB);
        // The simulation holds more than is mapped; nothing of it; half of it.
        assert_eq!(size.room(0.5, (3 * MIB) as f64), Some((26 * MIB) as f64));
        assert_eq!(size.room(0.5, 0.0), Some((24 * MIB) as f64));
        assert_eq!(size.room(0.5, MIB as f64), Some((25 * MIB) as f64));
        assert_eq!(size.room(0.05, 0.0), None);
        // It is called as it is outside of what a container sees.
        let inside = Hierarchy { root: "/box".into(), ..shown(top.path()) };
        let size = Size::below(&own, &inside, 1 << 40).unwrap();
        assert_eq!(size.limit_of.as_deref(), Some("/box/a"));
        // A limit beyond the machine is none.
        let size = Size::below(&own, &shown(top.path()), 32 * MIB).unwrap();
        assert_eq!(size, Size { limit: None, limit_of: None, others: 0, ..limited });
        assert_eq!(size.room(2.0, 0.0), Some((6 * MIB) as f64));
    }

    #[test]
    fn version_1_counts_what_is_below() {
        let top = tempfile::tempdir().unwrap();
        let stat = "mapped_file 1\ntotal_mapped_file 30\ntotal_shmem 10\nactive_file 1\ninactive_file 2\n\
                    total_inactive_file 300\ntotal_active_file 40\n";
        group(
            top.path(),
            &[("memory.limit_in_bytes", "1000\n"), ("memory.usage_in_bytes", "500\n"), ("memory.stat", stat)],
        );
        let size = Size::below(top.path(), &shown(top.path()), 1 << 40).unwrap();
        assert_eq!(size, Size { limit: Some(1000), others: 160, cached: 340, mapped: 20, ..Size::default() });
    }

    /// Of 20 MiB above, 8 are its files, 9 those of its neighbour, and 2 no files.
    #[test]
    fn what_neighbours_have_cached_goes_with_the_limit() {
        let top = tempfile::tempdir().unwrap();
        let (above, own) = (top.path().join("a"), top.path().join("a/b"));
        let stat = |mib: u64| format!("inactive_file {}\nactive_file 0\n", mib * MIB);
        let (limit, current) = ((20 * MIB).to_string(), (19 * MIB).to_string());
        group(&above, &[("memory.max", &limit), ("memory.current", &current), ("memory.stat", &stat(17))]);
        group(&own, &[("memory.max", "max\n"), ("memory.stat", &stat(8))]);
        let size = Size::below(&own, &shown(top.path()), 1 << 40).unwrap();
        assert_eq!((size.others, size.beside, size.cached), (2 * MIB, 9 * MIB, 8 * MIB));
        assert_eq!(size.room(0.5, 0.0), Some(3.5 * MIB as f64));
        assert!(size.is_shared() && !Size { beside: MIB, ..size }.is_shared());
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        assert_eq!(Size::below(Path::new("/nowhere/x"), &shown(Path::new("/nowhere")), 1), None);
    }
}
