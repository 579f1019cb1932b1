//! Memory that is short.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::tools::*;

/// A memory cgroup of the tests' own, of either version, for as long as this lives.
struct Group {
    path: PathBuf,
    /// A file system mounted for it.
    mounted: Option<PathBuf>,
}

impl Group {
    fn new(dir: &Path, limit: u64) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let mut mounted = None;
        let (root, file) = if v1.join("memory.limit_in_bytes").exists() {
            (v1.to_owned(), "memory.limit_in_bytes")
        } else {
            let mut root = PathBuf::from("/sys/fs/cgroup");
            if !root.join("cgroup.controllers").exists() {
                root = dir.join("cgroup");
                fs::create_dir(&root).unwrap();
                let status =
                    Command::new("mount").args(["-t", "cgroup2", "none"]).arg(&root).status().unwrap();
                assert!(status.success());
                mounted = Some(root.clone());
            }
            fs::write(root.join("cgroup.subtree_control"), "+memory").unwrap();
            (root, "memory.max")
        };
        let path = root.join(format!("cachetop-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::write(path.join(file), limit.to_string()).unwrap();
        Self { path, mounted }
    }

    fn add(&self, pid: u32) {
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It has no process by now, unless a test has failed.
        let _ = fs::remove_dir(&self.path);
        if let Some(root) = &self.mounted {
            let _ = Command::new("umount").arg(root).status();
        }
    }
}

/// Pages of files that the kernel says it has reclaimed, on the whole machine.
fn reclaimed() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    text.lines().find_map(|l| l.strip_prefix("pgsteal_file ")).unwrap().parse().unwrap()
}

/// Whether a kdamond runs, which may page out what nobody asked it to.
pub fn damon() -> bool {
    let threads = fs::read_dir("/sys/kernel/mm/damon/admin/kdamonds").into_iter().flatten().flatten();
    threads.filter_map(|t| fs::read_to_string(t.path().join("state")).ok()).any(|state| state.trim() == "on")
}

pub fn memory_pressure(dir: &Path) {
    const PAGES: u64 = 8192;
    const LIMIT: u64 = 8 << 20;
    let path = cold_file(&dir.join("file"), PAGES);
    let file = File::open(&path).unwrap();
    let group = Group::new(dir, LIMIT);
    let mut reader = Reader::new();
    group.add(reader.pid());
    let before_start = reclaimed();
    let mut monitor = Monitor::start("--json --by process --top 100000 0.3");
    let after_start = reclaimed();
    reader.tell("read", &path);
    reader.tell("read", &path);
    monitor.catch_up();
    let left = resident(&file);
    let least = reclaimed() - after_start;
    let (intervals, total) = monitor.finish_json();
    let most = reclaimed() - before_start;
    let rows = rows_of(&intervals, reader.pid());
    let [accesses, hits, ahead, misses, bytes] = reads(&rows);
    let fills = sum(&rows, "/readahead/fills");
    let [evicted, removed] = ["/cache/evicted", "/cache/removed"].map(|p| figure(&total, p));
    println!(
        "     {accesses} accesses: {hits} {ahead} {misses}; {fills} fills, {left} left, {evicted} evicted, {removed} \
         removed; {least} to {most} reclaimed by the kernel's own count"
    );
    assert_eq!((accesses, hits + ahead + misses), (2 * PAGES, 2 * PAGES));
    assert_eq!(bytes, 2 * fs::metadata(&path).unwrap().len());
    assert_eq!(figure(&total, "/lost/total"), 0, "{total}");
    // More than the limit cannot stay, so that the second time most is read anew.
    assert!(left <= LIMIT / page_size() && fills >= 2 * PAGES - LIMIT / page_size(), "{left} {fills}");
    // What was brought in and is not there any more was evicted: nobody else takes pages of this file away.
    let gone = fills - left;
    assert!(evicted >= gone, "{evicted} evicted, {gone} gone");
    // The kernel's own count, of the whole machine. On a quiet one all three are the same. What DAMON takes away
    // where it is told to is not in it.
    assert!(evicted >= least, "{evicted} evicted, /proc/vmstat has {least}");
    if damon() {
        println!("     DAMON is at work here: no upper bound");
    } else {
        assert!(evicted <= most, "{evicted} evicted, /proc/vmstat has {most}");
    }
    reader.end();
}
