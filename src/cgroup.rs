//! Control groups: which hierarchy counts memory, and the paths and containers behind the ids that the kernel gives.

mod handle;
mod label;
mod memory;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;

use crate::procfs;

use handle::Answer;
pub use label::Label;
pub use label::label;
pub use memory::Held;
pub use memory::Memory;

/// Whether a line of `/proc/self/mountinfo` is the memory controller's hierarchy of version 1.
#[must_use]
pub fn is_memory_v1(line: &str) -> bool {
    let Some((_, tail)) = line.split_once(" - ") else { return false };
    let mut words = tail.split(' ');
    words.next() == Some("cgroup") && words.next_back().is_some_and(|o| o.split(',').any(|o| o == "memory"))
}

/// A cgroup as people know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cgroup {
    /// Its path in the hierarchy, or `cgroup:ID (gone)` if it went before anybody could ask.
    pub path: String,
    /// What the path tells of a container, a pod or a unit.
    pub label: Label,
}

impl Cgroup {
    fn new(path: String) -> Rc<Self> {
        let label = label(&path);
        Rc::new(Self { path, label })
    }
}

/// Where the hierarchy is mounted: the memory controller's of version 1, else the one of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The directory.
    pub mount: PathBuf,
    /// The cgroup that it shows: `/` but in containers.
    pub root: String,
}

impl Hierarchy {
    /// Finds it in the text of a mountinfo file.
    #[must_use]
    pub fn find(mountinfo: &str) -> Option<Self> {
        let v1 = mountinfo.lines().find(|l| is_memory_v1(l));
        let v2 = || mountinfo.lines().find(|l| l.contains(" - cgroup2 "));
        let mut words = v1.or_else(v2)?.split(' ').skip(3);
        let root = crate::files::unescape(words.next()?);
        let mount = crate::files::unescape_path(words.next()?);
        Some(Self { mount, root })
    }

    /// The directory of a path in the hierarchy; `None`: it is not below what this mount shows.
    #[must_use]
    pub fn dir(&self, path: &str) -> Option<PathBuf> {
        if !is_below(path, &self.root) {
            return None;
        }
        let inside = path.strip_prefix(self.root.trim_end_matches('/'))?;
        Some(self.mount.join(inside.trim_start_matches('/')))
    }

    /// The path in the hierarchy of a directory below the mount point.
    pub(crate) fn inside(&self, dir: &Path) -> Option<String> {
        Some(join(&self.root, &dir.strip_prefix(&self.mount).ok()?.to_string_lossy()))
    }
}

/// Names that are kept, and as many again of those that were looked up before: a cgroup's number is never given twice, so
/// that none of them becomes wrong, but machines make cgroups all the time.
const KEPT: usize = 4096;
/// Directories that are looked at for one name, where the kernel does not say it.
const STEPS: usize = 512;

/// Paths of cgroups by id. The kernel is asked about each once; where it does not say, the tree is walked, some steps for
/// each id that nobody has seen.
#[derive(Debug)]
pub struct Cgroups {
    hierarchy: Option<Hierarchy>,
    known: HashMap<u64, Rc<Cgroup>>,
    before: HashMap<u64, Rc<Cgroup>>,
    proc: PathBuf,
    /// Directories that the walk has still to look into.
    ahead: Vec<(PathBuf, String)>,
    /// Whom the walk began for: for others its end proves nothing, since they may have been made behind it.
    sought: Option<u64>,
    steps: usize,
}

impl Cgroups {
    /// Those of a hierarchy; `proc` is where `/proc` is mounted.
    #[must_use]
    pub fn new(hierarchy: Option<Hierarchy>, proc: &Path) -> Self {
        let (known, before) = (HashMap::new(), HashMap::new());
        Self { hierarchy, known, before, proc: proc.into(), ahead: Vec::new(), sought: None, steps: 0 }
    }

    /// The cgroup with this id. `tgid` is a process that was in it.
    pub fn get(&mut self, id: u64, tgid: u32) -> Rc<Cgroup> {
        if let Some(known) = self.known.get(&id) {
            return Rc::clone(known);
        }
        if let Some(known) = self.before.get(&id).cloned() {
            return self.keep(id, known);
        }
        let gone = || Cgroup::new(format!("cgroup:{id} (gone)"));
        let cgroup = match self.hierarchy.as_ref().map(|h| (h, handle::look_up(&h.mount, id))) {
            Some((_, Answer::Gone)) => gone(),
            Some((h, Answer::Path(dir))) => match h.inside(&dir) {
                Some(path) => Cgroup::new(path),
                // It is there, but not below what this mount shows.
                None => Cgroup::new(format!("cgroup:{id}")),
            },
            Some((_, Answer::Refused)) => match self.ask(tgid).filter(|path| self.find(path) == Some(id)) {
                Some(path) => Cgroup::new(path),
                None => match self.walk(id) {
                    Some(found) => found,
                    // Only a walk to the end says that it is not there.
                    None if self.ahead.is_empty() && self.sought == Some(id) => gone(),
                    None => return Cgroup::new(format!("cgroup:{id}")),
                },
            },
            // Where the tree cannot be seen, the process may still be asked.
            None => self.ask(tgid).map_or_else(gone, Cgroup::new),
        };
        self.keep(id, cgroup)
    }

    /// Whether the cgroup with this id was removed; false where that cannot be told.
    #[must_use]
    pub fn is_gone(&self, id: u64) -> bool {
        self.hierarchy.as_ref().is_some_and(|h| handle::look_up(&h.mount, id) == Answer::Gone)
    }

    fn keep(&mut self, id: u64, cgroup: Rc<Cgroup>) -> Rc<Cgroup> {
        if self.known.len() >= KEPT {
            self.before = std::mem::take(&mut self.known);
        }
        self.known.insert(id, Rc::clone(&cgroup));
        cgroup
    }

    /// The id of a cgroup, by its path in the hierarchy or the path of its directory.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<u64> {
        let hierarchy = self.hierarchy.as_ref()?;
        let inside = || fs::metadata(hierarchy.dir(path)?).ok();
        let as_given = || Path::new(path).starts_with(&hierarchy.mount).then(|| fs::metadata(path).ok());
        inside().or_else(|| as_given().flatten()).map(|m| m.ino())
    }

    /// The path in the hierarchy that an option names: as given, or below the mount point.
    #[must_use]
    pub fn canonical(&self, path: &str) -> String {
        let below = self.hierarchy.as_ref().and_then(|h| h.inside(Path::new(path)));
        let path = below.unwrap_or_else(|| path.to_owned());
        let trimmed = path.trim_end_matches('/');
        if trimmed.starts_with('/') { trimmed.into() } else { format!("/{trimmed}") }
    }

    /// Some steps of a walk, from the root again once it has come to the end.
    fn walk(&mut self, id: u64) -> Option<Rc<Cgroup>> {
        let hierarchy = self.hierarchy.as_ref()?;
        if self.ahead.is_empty() {
            self.sought = Some(id);
            self.ahead.push((hierarchy.mount.clone(), hierarchy.root.clone()));
        }
        for _ in 0..STEPS {
            let (dir, path) = self.ahead.pop()?;
            self.steps += 1;
            let found = fs::metadata(&dir).is_ok_and(|m| m.ino() == id);
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    let path = join(&path, &entry.file_name().to_string_lossy());
                    self.ahead.push((entry.path(), path));
                }
            }
            if found {
                self.ahead.clear();
                return Some(Cgroup::new(path));
            }
        }
        None
    }

    fn ask(&self, tgid: u32) -> Option<String> {
        let text = procfs::text(self.proc.join(tgid.to_string()).join("cgroup")).ok()?;
        of_process(&text).map(str::to_owned)
    }
}

/// The path that counts in the text of `/proc/PID/cgroup`.
#[must_use]
pub fn of_process(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(|l| l.splitn(3, ':').collect::<Vec<_>>());
    let v1 = lines.clone().find(|w| w.get(1).is_some_and(|c| c.split(',').any(|c| c == "memory")));
    v1.or_else(|| lines.find(|w| w.first() == Some(&"0")))?.get(2).copied()
}

/// Whether a path is this cgroup, or lies below it.
pub(crate) fn is_below(path: &str, cgroup: &str) -> bool {
    let rest = path.strip_prefix(cgroup.trim_end_matches('/'));
    rest.is_some_and(|r| r.is_empty() || r.starts_with('/'))
}

fn join(path: &str, name: &str) -> String {
    match (path.trim_end_matches('/'), name) {
        ("", "") => "/".into(),
        (path, "") => path.into(),
        (path, name) => format!("{path}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_the_memory_hierarchy_counts() {
        let v1 = "37 26 0:32 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory";
        assert!(is_memory_v1(v1));
        assert!(!is_memory_v1("36 26 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"));
        assert!(!is_memory_v1("35 26 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,memory_recursiveprot"));
        assert!(!is_memory_v1(""));
        let v2 = "35 26 0:30 /kubepods/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw,memory_recursiveprot";
        let found = Hierarchy::find(&format!("{v2}\n{v1}")).unwrap();
        assert_eq!((found.mount.to_str(), found.root.as_str()), (Some("/sys/fs/cgroup/memory"), "/"));
        let found = Hierarchy::find(v2).unwrap();
        assert_eq!((found.mount.to_str(), found.root.as_str()), (Some("/sys/fs/cgroup"), "/kubepods/x"));
        assert_eq!(Hierarchy::find(""), None);
        let odd = Hierarchy::find(r"35 26 0:30 / /cg\377 rw - cgroup2 cgroup2 rw").unwrap();
        assert_eq!(odd.mount.as_os_str().as_encoded_bytes(), b"/cg\xff");
    }

    #[test]
    fn a_process_tells_the_path_that_counts() {
        assert_eq!(of_process("9:name=systemd:/a\n4:cpu,memory:/b:c\n0::/d\n"), Some("/b:c"));
        assert_eq!(of_process("1:cpu:/a\n0::/d\n"), Some("/d"));
        assert_eq!(of_process(""), None);
    }

    #[test]
    fn the_tree_is_walked_for_ids_that_are_new() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str| dir.path().join(p);
        let ino = |p: &str| fs::metadata(at(p)).unwrap().ino();
        fs::create_dir_all(at("system.slice/a.service")).unwrap();
        let hierarchy = Hierarchy { mount: dir.path().into(), root: "/".into() };
        let mut groups = Cgroups::new(Some(hierarchy), Path::new("/nowhere"));
        let (a, root) = (ino("system.slice/a.service"), ino(""));
        assert_eq!(groups.get(a, 1).path, "/system.slice/a.service");
        assert_eq!(groups.get(root, 1).path, "/");
        assert_eq!(groups.get(ino("system.slice"), 1).path, "/system.slice");
        fs::create_dir(at("b")).unwrap();
        assert_eq!(groups.get(ino("b"), 1).path, "/b");
        assert_eq!(groups.find("/b"), Some(ino("b")));
        assert_eq!(groups.find(at("b").to_str().unwrap()), Some(ino("b")));
        assert_eq!(groups.canonical(at("b").to_str().unwrap()), "/b");
        assert_eq!(groups.canonical("b/"), "/b");
        // One that goes keeps its name; one that was never seen has none.
        let b = ino("b");
        fs::remove_dir(at("b")).unwrap();
        assert_eq!(groups.get(b, 1).path, "/b");
        assert_eq!(groups.get(u64::MAX, 1).path, format!("cgroup:{} (gone)", u64::MAX));
        let steps = groups.steps;
        groups.get(u64::MAX, 1);
        assert_eq!(groups.steps, steps);
    }

    #[test]
    fn a_walk_takes_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let count = 3 * STEPS;
        for n in 0..count {
            fs::create_dir(dir.path().join(n.to_string())).unwrap();
        }
        let hierarchy = Hierarchy { mount: dir.path().into(), root: "/".into() };
        let mut groups = Cgroups::new(Some(hierarchy), Path::new("/nowhere"));
        let mut answers = Vec::new();
        for asked in 1.. {
            answers.push(groups.get(u64::MAX, 1).path.clone());
            assert!(groups.steps <= asked * STEPS);
            if answers.last().unwrap().ends_with("(gone)") {
                break;
            }
        }
        // Nobody says that it is gone before all have been looked at.
        assert_eq!(answers.len(), count / STEPS + 1);
        assert_eq!(answers[0], format!("cgroup:{}", u64::MAX));
    }

    /// A mount that shows `/a` has nothing of `/ab`, though a directory may be called as what is left of that.
    #[test]
    fn a_part_of_the_tree_is_told_from_one_whose_name_begins_alike() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/x")).unwrap();
        let at = Hierarchy { mount: dir.path().into(), root: "/a".into() };
        assert_eq!((at.dir("/ab/x"), at.dir("/a/b/x")), (None, Some(dir.path().join("b/x"))));
        assert_eq!(at.dir("/a"), Some(dir.path().into()));
        let groups = Cgroups::new(Some(at), Path::new("/nowhere"));
        let found = fs::metadata(dir.path().join("b/x")).unwrap().ino();
        assert_eq!((groups.find("/ab/x"), groups.find("/a/b/x")), (None, Some(found)));
    }

    #[test]
    fn names_are_kept_within_bounds() {
        let mut groups = Cgroups::new(None, Path::new("/nowhere"));
        for id in 0..3 * KEPT as u64 {
            groups.get(id, 1);
        }
        assert!(groups.known.len() + groups.before.len() <= 2 * KEPT);
    }
}
