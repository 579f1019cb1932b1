//! Cgroups: more than the memory of one holds, and one that is a container.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::fs::Fs;
use crate::hold::count;
use crate::hold::number;
use crate::hold::program;
use crate::hold::resident;
use crate::sys;

/// Pages of a file, and files: twice the limit.
const PAGES: u64 = 2048;
const FILES: u64 = 4;

/// A cgroup whose processes have so much memory for the cache and all else.
pub struct Group(pub PathBuf);

impl Group {
    pub fn new(name: &str) -> Self {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let group = Self(if v1.join("cgroup.procs").exists() { v1 } else { v2 }.join(name));
        fs::create_dir_all(&group.0).unwrap();
        group
    }

    fn limited(limit: &str) -> Self {
        let first = Path::new("/sys/fs/cgroup/memory/cgroup.procs").exists();
        if !first {
            fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory").unwrap();
        }
        let group = Self::new(&format!("cachedu-limit-{}", std::process::id()));
        let file = if first { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(group.0.join(file), limit).unwrap();
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
        // That of all containers, if there are no others; that of all cgroups never.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

/// What the last files push out again of the first is told, and ends with 1.
pub fn load_beyond_a_limit(fs: Fs, dir: &Path) {
    // The pages of tmpfs are nobody's to push out.
    if fs == Fs::Tmpfs {
        return;
    }
    let group = Group::limited("16M");
    let made: Vec<File> = (0..FILES)
        .map(|n| {
            let path = dir.join(format!("f{n}"));
            fs::write(&path, vec![1; usize::try_from(PAGES * sys::page_size()).unwrap()]).unwrap();
            let file = File::open(path).unwrap();
            file.sync_all().unwrap();
            sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
            file
        })
        .collect();
    let there = || made.iter().map(|file| count(&resident(file, PAGES))).sum::<u64>();
    assert_eq!(there(), 0);
    let line = "echo $$ > \"$1/cgroup.procs\"; exec \"$2\" --json --load \"$3\"";
    let out =
        Command::new("sh").args(["-c", line, "sh"]).arg(&group.0).arg(program()).arg(dir).output().unwrap();
    let left = there();
    let rows: Vec<serde_json::Value> =
        String::from_utf8_lossy(&out.stdout).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |kind: &str, key: &str| {
        rows.iter().filter(|row| row["type"] == kind).map(|row| number(row, key)).collect::<Vec<_>>()
    };
    let all = FILES * PAGES;
    assert!(left > 0 && left < all, "{left} of {all}");
    assert_eq!(of("load", "after").len() as u64, FILES, "{rows:?}");
    let gone = of("gone", "gone_at_least").iter().sum::<u64>();
    assert_eq!(of("gone", "cached").iter().sum::<u64>() + gone, PAGES * of("gone", "cached").len() as u64);
    assert_eq!(of("summary", "gone_at_least"), [gone], "{rows:?}");
    // To print its rows the program needs memory, too: reclaim takes 32 pages at a time.
    let after = all - gone;
    assert!(after >= left && after - left <= 128, "{after}, {left} {rows:?}");
    assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The processes of a container, by the beginning of its id.
pub fn a_container(_: Fs, dir: &Path) {
    let id = format!("c0ffee{:058x}", std::process::id());
    let group = Group::new(&format!("docker/{id}"));
    let path = dir.join("data");
    fs::write(&path, "x").unwrap();
    let line = "echo $$ > \"$1/cgroup.procs\"; echo; exec sleep 1000 < \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(&group.0).arg(&path).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
    let ours = |args: &[&str]| {
        let out = Command::new(program()).args(args).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let start = std::time::Instant::now();
    // It has the file as soon as it is another program.
    while !ours(&["--json", "--container", "c0ffee"]).1.contains(path.to_str().unwrap()) {
        assert!(start.elapsed().as_secs() < 20, "{:?}", ours(&["--container", "c0ffee"]));
    }
    assert_eq!(ours(&["--container", "c0ffee1"]).0, Some(2), "there is none");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ours(&["--container", "c0ffee"]).0, Some(2), "it is gone");
}
