//! What is found in trees of thousands of small files, in mappings and in memory: the text of the report, sentence by
//! sentence, beside what was done.

use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

const FILES: u64 = 6000;

/// A tree of files of one to three pages, on its disk and out of the cache: how many pages.
fn tree(dir: &Path) -> u64 {
    let mut pages = 0;
    for n in 0..FILES {
        let below = dir.join(format!("{}", n % 60));
        fs::create_dir_all(&below).unwrap();
        let size = 1 + n % 3;
        fs::write(below.join(format!("f{n}")), vec![b'x'; size as usize * 4096 - 100]).unwrap();
        pages += size;
    }
    // SAFETY: takes and touches nothing.
    unsafe { libc::sync() };
    forget(dir);
    pages
}

/// Takes the pages of the files of a tree out of the cache, and of nobody else.
fn forget(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            forget(&entry.path());
            continue;
        }
        let (path, start) = (entry.path(), Instant::now());
        let file = File::open(&path).unwrap();
        // What is being written just now stays: by mincore it is known to be gone.
        loop {
            // SAFETY: takes numbers; the descriptor is open.
            let done = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            assert_eq!(done, 0);
            if resident(&file) == 0 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{} stays in the cache", path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn report(options: &str, command: &[&str], dir: &Path) -> Value {
    let path = dir.join("report.json");
    let mut c = cachestat(&format!("--json -o {} {options}", path.display()));
    c.arg("--").args(command);
    let (_, _, err) = output(&mut c);
    assert_eq!(err, "");
    let report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    crate::tools::schema::check_report(&report);
    report
}

fn finding<'a>(report: &'a Value, id: &str) -> Option<&'a Value> {
    report["findings"].as_array().unwrap().iter().find(|f| f["id"] == id)
}

/// Whose runs a finding is about.
fn runs(report: &Value, id: &str) -> Value {
    finding(report, id).map_or(Value::Null, |f| f["runs"].clone())
}

/// The first run brings a tree in, which the second finds; a third process finds it, too, and nobody was watched then.
pub fn command_on_a_tree_twice(dir: &Path) {
    let top = dir.join("tree");
    let pages = tree(&top);
    let words = ["grep", "-rc", "zzzz", top.to_str().unwrap()];
    let twice = report("-r 2", &words, dir);
    let found = finding(&twice, "warmed-by-earlier-run").unwrap_or_else(|| panic!("{}", twice["findings"]));
    assert_eq!((&found["runs"], &found["evidence"]["warmed_by_run"]), (&Value::from(vec![2]), &1.into()));
    let n = |key: &str| found["evidence"][key].as_u64().unwrap();
    // What the machine evicted in between was not warm.
    assert!(n("brought_pages") + n("asked_pages") - n("warm_pages") >= pages, "{found}");
    // What else it read is of programs and libraries.
    assert!(n("asked_pages") < pages + 2000 && n("warm_pages") <= n("asked_pages"), "{found}");
    assert_eq!(runs(&twice, "cached-before"), Value::Null, "{}", twice["findings"]);
    assert_eq!(twice["one_thread"], true);
    // Again: it was there before.
    let once = report("", &words, dir);
    let found = finding(&once, "cached-before").unwrap_or_else(|| panic!("{}", once["findings"]));
    assert!(found["evidence"]["there_before_pages"].as_u64().unwrap() >= pages, "{found}");
    assert!(found["remedy"].as_str().unwrap().contains("--cold all"), "{found}");
    // And with a third of its files there: neither.
    for entry in fs::read_dir(&top).unwrap().flatten().take(40) {
        forget(&entry.path());
    }
    let part = report("", &words, dir);
    assert_eq!(runs(&part, "cached-before"), Value::Null, "{}", part["findings"]);
    // Somebody else brings it all in, just before.
    forget(&top);
    let line = format!("grep -rc zzzz {} >/dev/null || true", top.display());
    let mut c = cachestat(&format!("--json -o {}", dir.join("report.json").display()));
    let (_, _, err) = output(c.args(["--prepare", &line, "--"]).args(words));
    assert_eq!(err, "");
    let by: Value = serde_json::from_str(&fs::read_to_string(dir.join("report.json")).unwrap()).unwrap();
    let found = finding(&by, "warmed-by-other-process").unwrap_or_else(|| panic!("{}", by["findings"]));
    assert_eq!(found["evidence"]["comm"], "grep", "{found}");
    let n = |key: &str| found["evidence"][key].as_u64().unwrap();
    // What the machine evicted in between was not warm.
    assert!(n("brought_pages") + n("asked_pages") - n("warm_pages") >= pages, "{found}");
}

/// A mapping of 64 MiB, cold, by a program that is warm itself.
pub fn command_that_maps(dir: &Path) {
    const PAGES: u64 = 16_384;
    let file = dir.join("mapped");
    fs::write(&file, vec![1; PAGES as usize * 4096]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    let line = "import mmap,sys\nf=open(sys.argv[1],'rb')\nm=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)\n\
                s=sum(m[i] for i in range(0,len(m),4096))";
    let words = ["python3", "-c", line, file.to_str().unwrap()];
    // The program and what it reads when it starts is there.
    report("", &words, dir);
    let only = File::open(&file).unwrap();
    // SAFETY: takes numbers; the descriptor is open.
    assert_eq!(unsafe { libc::posix_fadvise(only.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    let cold = report("", &words, dir);
    let row = cold["files"].as_array().unwrap().iter().find(|f| f["path"] == file.to_str().unwrap()).unwrap();
    let n = |key: &str| row[key].as_u64().unwrap();
    assert_eq!(n("fault_misses") + n("readahead_pages"), PAGES, "{row}");
    assert!(cold["asked_pages"].as_u64().unwrap() >= PAGES, "{cold}");
    assert!(cold["warm_pages"].as_u64().unwrap() < PAGES / 2, "{cold}");
    for id in ["cached-before", "warmed-by-earlier-run", "readahead-fed"] {
        assert_eq!(runs(&cold, id), Value::Null, "{}", cold["findings"]);
    }
    assert!(finding(&cold, "mapped-not-read").is_some(), "{}", cold["findings"]);
}

/// 32 MiB of memory that looks like a file: seen, or told of.
pub fn command_on_tmpfs(dir: &Path) {
    const SIZE: u64 = 32 << 20;
    let mount = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = mount.path().join("x");
    fs::write(&file, vec![1; SIZE as usize]).unwrap();
    let words = ["cat", file.to_str().unwrap()];
    let told = report("", &words, dir);
    assert!(told["called_read_bytes"].as_u64().unwrap() >= SIZE, "{told}");
    let note =
        told["unknown"].as_array().unwrap().iter().find_map(|n| n.as_str().filter(|n| n.contains("tmpfs")));
    if told["read"]["bytes"].as_u64().unwrap() >= SIZE {
        assert_eq!(note, None);
    } else {
        assert!(note.is_some_and(|n| n.starts_with("not seen: up to 32")), "{}", told["unknown"]);
        assert!(told["asked_pages"].as_u64().unwrap() >= SIZE / 4096, "{told}");
    }
    assert_eq!(runs(&told, "cached-before"), Value::Null, "{}", told["findings"]);
    // The nearest: the same bytes from a disk.
    let plain = dir.join("plain");
    fs::copy(&file, &plain).unwrap();
    let told = report("", &["cat", plain.to_str().unwrap()], dir);
    let seen =
        told["unknown"].as_array().unwrap().iter().all(|n| !n.as_str().unwrap().starts_with("not seen"));
    assert!(seen, "{}", told["unknown"]);
}
