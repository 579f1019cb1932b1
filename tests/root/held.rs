//! What cgroups hold of the cache, and how much they may: against what the kernel says of the same.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::tools::*;
use crate::whatif::hierarchy;

/// With two of the same name below others, an escape in one, and a limit that is the parent's.
const NAMES: [&str; 5] = ["a", "a/same \u{1b}[1m", "b", "b/same \u{1b}[1m", "free"];
const LIMITS: [Option<u64>; 5] = [Some(48 << 20), None, Some(64 << 20), Some(32 << 20), None];

struct Groups(Vec<PathBuf>);

impl Drop for Groups {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|group| drop(fs::remove_dir(group)));
    }
}

/// Bytes of files that the kernel charges it and those below it for.
fn charged(group: &Path) -> u64 {
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap();
    let of = |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.parse::<u64>().ok());
    of("total_cache ").or_else(|| of("file ")).expect("what is cached")
}

/// Cells of the last row of a cgroup: `held_bytes`, `limit_bytes`.
fn row(csv: &str, group: &str) -> [Option<u64>; 2] {
    let is_its = |line: &&str| line.split(',').nth(2).is_some_and(|cell| cell.ends_with(group));
    let line = csv.lines().rfind(is_its).unwrap_or_else(|| panic!("no row of {group} in {csv}"));
    let mut cells = line.rsplit(',').take(2).map(|cell| cell.parse().ok()).collect::<Vec<_>>();
    cells.reverse();
    cells.try_into().unwrap()
}

/// Each has read a file of its own, which is still there.
pub fn what_cgroups_hold(dir: &Path) {
    const PAGES: u64 = 2048;
    let top = hierarchy();
    let _ = fs::write(top.join("cgroup.subtree_control"), "+memory");
    let own = format!("cachetop-held-{}-", std::process::id());
    let groups = Groups(NAMES.iter().map(|name| top.join(format!("{own}{name}"))).collect());
    for (group, limit) in groups.0.iter().zip(LIMITS) {
        fs::create_dir(group).unwrap();
        // Of version 2, those that hand it on have no processes.
        if groups.0.iter().any(|other| other != group && other.starts_with(group)) {
            let _ = fs::write(group.join("cgroup.subtree_control"), "+memory");
        }
        let files = ["memory.max", "memory.limit_in_bytes"].map(|name| group.join(name));
        let file = files.iter().find(|file| file.exists()).expect("cgroups have limits of memory");
        limit.into_iter().for_each(|limit| fs::write(file, limit.to_string()).unwrap());
    }
    let mut monitor =
        Monitor::start("--csv --by cgroup --top 100000 --columns misses,held_bytes,limit_bytes 0.5");
    for n in [1, 3, 4] {
        let file = cold_file(&dir.join(format!("file-{n}")), PAGES);
        let line = "echo $$ >\"$1/cgroup.procs\" && exec cat \"$2\" >/dev/null";
        let mut cat = Command::new("sh");
        assert!(cat.args(["-c", line, "sh"]).arg(&groups.0[n]).arg(file).status().unwrap().success());
    }
    monitor.catch_up();
    monitor.signal(libc::SIGINT);
    monitor.ended();
    let csv = monitor.lines.join("\n");
    for n in [1, 3, 4] {
        let shown = format!("{own}{}", NAMES[n].replace('\u{1b}', "\\x1b"));
        let [held, limit] = row(&csv, &shown);
        // The rest are a few pages a processor that the kernel hands in late, and what `cat` itself is made of.
        let there = charged(&groups.0[n]);
        let held = held.unwrap();
        assert!(held.abs_diff(there) <= 2 << 20, "{shown}: {held}, the kernel says {there}");
        assert!(2 * held > PAGES * page_size(), "{shown}: {held}");
        let lowest = [n].into_iter().chain((n == 1).then_some(0)).chain((n == 3).then_some(2));
        assert_eq!(limit, lowest.filter_map(|n| LIMITS[n]).min(), "{shown}");
    }
}
