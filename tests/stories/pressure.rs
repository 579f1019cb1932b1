//! The stories of too little memory, of mappings, and of read-ahead for nothing. On a disk of ordinary speed: what they
//! tell is no matter of time.

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use crate::MIB;
use crate::PAGE;
use crate::cold_file;
use crate::sys;
use crate::told;

/// The disk that is not slow.
pub fn fast() -> PathBuf {
    let dir = PathBuf::from("/mnt/xfs/stories");
    fs::create_dir_all(&dir).unwrap();
    dir
}

pub fn me() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// More is written than may be dirty.
pub fn throttled(_: &Path) {
    let path = fast().join("written");
    let limits = ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_bytes"];
    let before: Vec<String> = limits.iter().map(|l| fs::read_to_string(l).unwrap()).collect();
    let ratio = ["/proc/sys/vm/dirty_background_ratio", "/proc/sys/vm/dirty_ratio"];
    let ratios: Vec<String> = ratio.iter().map(|l| fs::read_to_string(l).unwrap()).collect();
    fs::write(limits[0], "131072").unwrap();
    fs::write(limits[1], "262144").unwrap();
    let to = format!("of={}", path.display());
    let t = told("", &["dd", "if=/dev/zero", &to, "bs=64k", "count=512"]);
    for ((limit, value), (ratio, old)) in limits.iter().zip(before).zip(ratio.iter().zip(ratios)) {
        // One of the two is 0, and setting the other makes it so.
        let _ = fs::write(limit, value);
        let _ = fs::write(ratio, old);
    }
    let found = t.has("dirty-throttled");
    assert!(found["evidence"]["throttled_ns"].as_u64().unwrap() >= 10_000_000, "{found}");
    // The pauses are a part of waiting to write.
    let paused = found["evidence"]["throttled_ns"].as_f64().unwrap() / 1e9 / t.x("/wall_s");
    assert!(
        t.share("writing").is_some_and(|share| (0.9 * paused..=1.05).contains(&share)),
        "{}",
        t.0["verdict"]
    );
    assert_eq!(t.n("/write/dirtied"), 32 * MIB / PAGE, "{}", t.short());
    // The same with room enough.
    let t = told("", &["dd", "if=/dev/zero", &to, "bs=64k", "count=32", "conv=notrunc"]);
    t.has_not("dirty-throttled");
}

/// A memory cgroup smaller than the file that is read twice in it.
pub fn too_large_for_its_cgroup(_: &Path) {
    const FILE: u64 = 24;
    let path = cold_file(&fast(), "twice-in-a-cgroup", FILE * MIB);
    let v1 = Path::new("/sys/fs/cgroup/memory");
    let root = PathBuf::from("/tmp/cgroup");
    let (root, limit, own) = if v1.join("memory.limit_in_bytes").exists() {
        (v1.to_owned(), "memory.limit_in_bytes", false)
    } else if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        ("/sys/fs/cgroup".into(), "memory.max", false)
    } else {
        fs::create_dir_all(&root).unwrap();
        sys::mount("none".as_ref(), &root, "cgroup2", "").unwrap();
        (root, "memory.max", true)
    };
    if limit == "memory.max" {
        fs::write(root.join("cgroup.subtree_control"), "+memory").unwrap();
    }
    let group = root.join("story");
    fs::create_dir_all(&group).unwrap();
    fs::write(group.join(limit), (8 * MIB).to_string()).unwrap();
    let line = format!(
        "echo $$ >{}/cgroup.procs; cat {1} {1} >/dev/null; times >/tmp/times",
        group.display(),
        path.display()
    );
    let small = told("", &["sh", "-c", &line]);
    as_the_shell_has_it(&small);
    let counted = refaults(&group);
    // The same with room enough: all of it stays.
    fs::write(group.join(limit), (200 * MIB).to_string()).unwrap();
    sys::advise(&File::open(&path).unwrap(), 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
    let large = told("", &["sh", "-c", &line]);
    fs::remove_dir(&group).unwrap();
    if own {
        sys::unmount(&root);
    }
    let found = small.has("working-set-too-large");
    // As many as the kernel counts in that cgroup, but for what it does not count folio by folio.
    let back = found["evidence"]["refaulted"].as_u64().unwrap();
    println!("  refaulted: {back}, memory.stat: {counted}");
    assert!(back.abs_diff(counted) <= counted / 10, "{back} {counted}");
    large.has_not("working-set-too-large");
    assert_eq!(large.n("/cache/refaulted"), 0, "{}", large.short());
}

/// The verdict's processor time is what the shell was told by the kernel, in steps of a hundredth of a second each.
fn as_the_shell_has_it(t: &crate::Told) {
    let text = fs::read_to_string("/tmp/times").unwrap();
    // "0m0.01s 0m0.05s" of itself, and so of its children.
    let time = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
    };
    let by_shell: f64 = text.split_whitespace().map(time).sum();
    let ours = t.share("processor").unwrap() * t.x("/wall_s");
    println!("  processor {ours:.3} s, by the shell {by_shell:.3} s");
    assert!(
        (by_shell - 0.01..=by_shell + 0.05 + 0.1 * by_shell).contains(&ours),
        "{text}: {}",
        t.0["verdict"]
    );
}

/// Pages of files that came back into a cgroup after eviction, by the kernel's account.
fn refaults(group: &Path) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap();
    text.lines().find_map(|l| l.strip_prefix("workingset_refault_file ")).unwrap().parse().unwrap()
}

/// A program that maps its file: faults, not reads.
pub fn mapped(dir: &Path) {
    let path = cold_file(dir, "mapped", 4 * MIB);
    let t = told("", &[&me(), "--map", path.to_str().unwrap()]);
    let found = t.has("mapped-not-read");
    let n = |key: &str| found["evidence"][key].as_u64().unwrap_or(0);
    assert!(n("fault_misses") > 0, "{found}");
    t.has_not("faults-blind-to-reads");
    // 4 MiB at half a MiB a second, less what the disk lets through at first.
    t.because("data", 0.5..=1.0);
    let read = told("", &["cat", path.to_str().unwrap()]);
    read.has_not("mapped-not-read");
    assert!(read.share("data").is_none_or(|share| share < 0.2), "{}", read.0["verdict"]);
}

/// Touches every page of a file through a mapping, for the story above.
pub fn map(path: &str) {
    let file = File::open(path).unwrap();
    let pages = usize::try_from(file.metadata().unwrap().len() / PAGE).unwrap();
    let map = sys::Map::new(&file, pages).unwrap();
    for page in 0..pages {
        map.touch(page);
    }
}

/// 1024 pages are asked for ahead, and 16 read.
pub fn wasted(_: &Path) {
    let path = cold_file(&fast(), "wasted", 4 * MIB);
    let t = told("", &[&me(), "--will-need", path.to_str().unwrap()]);
    let found = t.has("readahead-wasted");
    let n = |key: &str| found["evidence"][key].as_u64().unwrap();
    assert_eq!((n("readahead_pages"), n("readahead_hits")), (4 * MIB / PAGE, 16), "{found}");
    // A lower bound: what is mapped of the program itself might have been of these pages.
    assert!((256..=4 * MIB / PAGE - 16).contains(&n("unused_pages")), "{found}");
    // It was asked for: that is what is to be done about it, not to read at random.
    assert!(found["remedy"].as_str().unwrap().contains("WILLNEED"), "{found}");
    // What nobody waits for costs no waiting: no more than the read of these 16.
    crate::tell::no_more_than_its_clock(&t, "data");
    // What is read ahead and read is not wasted.
    let path = cold_file(&fast(), "not-wasted", 4 * MIB);
    told("", &["cat", path.to_str().unwrap()]).has_not("readahead-wasted");
}

/// Asks for a whole file ahead and reads its beginning, for the story above.
pub fn will_need(path: &str) {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    // The kernel fetches no more than a window at a time.
    for at in (0..size).step_by(128 << 10) {
        sys::advise(&file, at, 128 << 10, libc::POSIX_FADV_WILLNEED).unwrap();
    }
    crate::tell::clocked(|| {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0; 16 * PAGE as usize], 0).unwrap()
    });
}

/// A tree whose inode tables and directories are cached, and whose data are not.
pub fn only_metadata(dir: &Path) {
    let dir = dir.join("many");
    fs::create_dir_all(&dir).unwrap();
    for n in 0..80 {
        cold_file(&dir, &n.to_string(), 16 << 10);
    }
    // Names and inodes go, what they are read from stays.
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    let line = format!("cat {}/* >/dev/null", dir.display());
    let t = told("", &["sh", "-c", &line]);
    t.has("only-metadata-warm");
    t.has_not("cached-before");
    t.because("data", 0.3..=1.0);
    // Once more: the data are warm as well.
    told("", &["sh", "-c", &line]).has_not("only-metadata-warm");
}

/// What warmed the cache is named: the run that nobody saw.
pub fn warmed_up(_: &Path) {
    let path = cold_file(&fast(), "warmed-up", 4 * MIB);
    let t = told("--warmup 1", &["cat", path.to_str().unwrap()]);
    let found = t.has("warmed-by-earlier-run");
    assert!(found["text"].as_str().unwrap().contains("--warmup"), "{found}");
    assert_eq!(
        (&found["evidence"]["warmed_by_run"], &found["runs"]),
        (&serde_json::Value::Null, &[1].into())
    );
    t.has_not("cached-before");
    assert!(t.share("data").is_none_or(|share| share < 0.2), "{}", t.0["verdict"]);
    t.says("was in the cache before");
}

/// Readers in parallel wait longer than the clock runs: nothing is divided up.
pub fn in_parallel(dir: &Path) {
    let paths: Vec<PathBuf> = (0..4).map(|n| cold_file(dir, &format!("parallel-{n}"), MIB / 4)).collect();
    let words: Vec<String> = paths.iter().map(|p| format!("cat {} >/dev/null &", p.display())).collect();
    let t = told("", &["sh", "-c", &format!("{} wait", words.join(" "))]);
    assert!(t.x("/time_parts/data_s") > t.x("/wall_s"), "{}", t.short());
    assert!(t.0["time_parts"]["unexplained_s"].is_null(), "{}", t.short());
    assert!(t.share("data").is_none_or(|share| share <= 1.0), "{}", t.0["verdict"]);
    for finding in t.0["findings"].as_array().unwrap() {
        let text = finding["text"].as_str().unwrap();
        let shares = text
            .split(" %")
            .filter_map(|t| t.rsplit(' ').next()?.trim_start_matches('(').parse::<f64>().ok());
        assert!(shares.into_iter().all(|s| s <= 100.0), "{text}");
    }
}
