//! The certificate of the state of the cache, beside what mincore says of every file before the run; and waiting, which is
//! never more than there are threads.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::tools::*;

const FILES: u64 = 2000;

/// Files of one to five pages: a third of them cached, a third not, a third with their first page.
fn tree(top: &Path) {
    fs::create_dir_all(top).unwrap();
    let path = |n: u64| top.join(format!("f{n}"));
    let bytes = |pages: u64| usize::try_from(pages * page_size() - 100).unwrap();
    for n in 0..FILES {
        fs::write(path(n), vec![b'x'; bytes(1 + n % 5)]).unwrap();
    }
    // SAFETY: takes and touches nothing.
    unsafe { libc::sync() };
    for n in 0..FILES {
        let file = File::open(path(n)).unwrap();
        if n % 3 > 0 {
            advise(&file, libc::POSIX_FADV_DONTNEED);
        }
        if n % 3 == 2 {
            advise(&file, libc::POSIX_FADV_RANDOM);
            file.read_exact_at(&mut [0], 0).unwrap();
        }
    }
}

fn report(command: &[&str], dir: &Path) -> Value {
    let path = dir.join("certified.json");
    let mut c = cachestat(&format!("--json -o {}", path.display()));
    let (_, _, err) = output(c.arg("--").args(command));
    assert_eq!(err, "");
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    schema::check_report(&report);
    report
}

/// Bytes cached of files, and all, in whole pages.
fn cached(files: &[PathBuf]) -> (u64, u64) {
    let of = |path: &PathBuf| (resident(&File::open(path).unwrap()), pages_of(path));
    let sum = files.iter().map(of).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    (sum.0 * page_size(), sum.1 * page_size())
}

/// Pages that DAMON has paged out by schemes that somebody has set up here: of these /proc/vmstat knows nothing.
fn paged_out() -> u64 {
    let directories = |of: &Path| fs::read_dir(of).into_iter().flatten().flatten().map(|e| e.path());
    let mut bytes = 0;
    for thread in directories(Path::new("/sys/kernel/mm/damon/admin/kdamonds")) {
        // The files show what was when they were last asked to; refused where it does not run.
        let _ = fs::write(thread.join("state"), "update_schemes_stats");
        for context in directories(&thread.join("contexts")) {
            for scheme in directories(&context.join("schemes")) {
                let text = fs::read_to_string(scheme.join("stats/sz_applied")).unwrap_or_default();
                bytes += text.trim().parse::<u64>().unwrap_or(0);
            }
        }
    }
    bytes / page_size()
}

/// Pages of files that the kernel has reclaimed, on the whole machine and in cgroups.
fn reclaimed() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    let names = ["pgsteal_kswapd ", "pgsteal_direct ", "pgsteal_file "];
    let all = names.map(|name| text.lines().find_map(|l| l.strip_prefix(name)?.parse::<u64>().ok()));
    // The last counts what cgroups reclaim as well; kernels before 5.14 do not have it.
    all.into_iter().flatten().max().unwrap() + paged_out()
}

/// Pieces of the time line in which more threads waited than there were.
fn impossible(report: &Value) -> Vec<f64> {
    let mut from = 0.0;
    let ticks = report["timeline"].as_array().unwrap().iter().map(|tick| {
        let ns: u64 = ["data_ns", "metadata_ns", "write_ns"].iter().map(|k| tick[*k].as_u64().unwrap()).sum();
        let at = tick["at_s"].as_f64().unwrap();
        let threads = std::time::Duration::from_nanos(ns).as_secs_f64() / (at - from);
        from = at;
        threads
    });
    ticks.filter(|threads| *threads > 1.01).collect()
}

/// What was cached of two thousand files and of the libraries of whoever reads them.
pub fn certificate_of_a_tree(dir: &Path) {
    let top = dir.join("certified");
    tree(&top);
    let all = top.to_str().unwrap();
    // Which files it uses besides: those are in the list when there are few.
    let few = dir.join("few");
    fs::create_dir_all(&few).unwrap();
    fs::write(few.join("one"), "x\n").unwrap();
    let learnt = report(&["grep", "-rc", "zzzz", few.to_str().unwrap()], dir);
    let rows = learnt["files"].as_array().unwrap();
    let paths = rows.iter().filter_map(|f| f["path"].as_str()).filter(|p| p.starts_with('/'));
    // The command is forked from this, which is no file of its own.
    let own = PathBuf::from(program()).canonicalize().unwrap();
    let mut files: Vec<PathBuf> =
        paths.map(PathBuf::from).filter(|p| p.is_file() && *p != own && !p.starts_with(&few)).collect();
    files.extend((0..FILES).map(|n| top.join(format!("f{n}"))));
    let before = reclaimed();
    let (truth, size) = cached(&files);
    let run = report(&["grep", "-rc", "zzzz", all], dir);
    // Where a limit is near, pages go between the look and the run: so many may be missing of the truth by then, or be back, where
    // they are of libraries that others use.
    let gone = (reclaimed() - before) * page_size();
    let c = &run["certificate"];
    println!("     truth {truth} of {size}: {c}");
    assert_eq!(c["id"], "cachestat-certificate-1");
    let before = &c["before"];
    let n = |key: &str| before[key].as_u64().unwrap_or_else(|| panic!("{key}: {c}"));
    assert_eq!((n("files"), n("files_unknown"), n("bytes")), (files.len() as u64, 0, size), "{c}");
    let (least, most) = (n("cached_at_least_bytes"), n("cached_at_most_bytes"));
    if c["lost"] == 0 {
        assert!(least <= truth + gone && truth <= most + gone, "{truth}, {gone} reclaimed: {c}");
        let why = before["why"].to_string();
        assert!(least == most || why.contains("left the cache"), "{c}");
        assert!(
            (least + gone) * 10 >= truth * 9,
            "what is told is no less than what is useful: {truth}: {c}"
        );
    }
    assert!(c["cold"].is_null());
    if run["one_thread"] == true {
        assert_eq!(impossible(&run), Vec::<f64>::new(), "{}", run["timeline"]);
    }
}

/// Another process reads 8 MiB meanwhile.
pub fn certificate_of_others(dir: &Path) {
    const PAGES: u64 = 2048;
    let path = cold_file(&dir.join("of-another"), PAGES);
    let (go, done) = (dir.join("go"), dir.join("done"));
    let line = format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done", go.display(), done.display());
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the command", || go.exists());
            let status =
                std::process::Command::new("cat").arg(&path).stdout(std::process::Stdio::null()).status();
            fs::write(&done, "").unwrap();
            assert!(status.unwrap().success());
        });
        report(&["sh", "-c", &line], dir)
    });
    let others = &run["certificate"]["others"];
    let n = |key: &str| others[key].as_u64().unwrap_or_else(|| panic!("{key}: {others}"));
    let bytes = pages_of(&path) * page_size();
    assert!(n("read_bytes") >= bytes - page_size() && n("brought_in_bytes") >= bytes, "{others}");
    assert!(n("missed_bytes") <= n("brought_in_bytes"), "{others}");
}
