//! `--what-if` against the truth: the same load once more, under the other limit, with `mincore` before each read.
//!
//! `WHAT_IF=long` tries more loads, sizes and time, and prints the table of docs/guide/what-if.md; `WHAT_IF_LOADS=zipf,mix` some of
//! them, `WHAT_IF_START=60` where it takes so many seconds until programs are loaded. `root --machine`, in a virtual machine of some
//! hundred MiB that does nothing else: of the whole machine, of whose memory huge pages take a part.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::tools::*;

const PAGES: u64 = 8192;
/// The same where it is about a machine.
const OF_A_MACHINE: u64 = 32768;
const LIMIT: u64 = 14 << 20;

/// xorshift128+, the same each time.
struct Random(u64, u64);

impl Random {
    fn next(&mut self) -> f64 {
        let (mut a, b) = (self.0, self.1);
        a ^= a << 23;
        (self.0, self.1) = (b, a ^ b ^ (a >> 18) ^ (b >> 5));
        (self.1.wrapping_add(b) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Reads pages of a file until the time is over: `zipf`, `mix` (a quarter of it a scan over a third of the file), `loop`,
/// or `phases` (Zipf's law over one half of the file, then the other, two seconds each). Prints the share of the
/// accesses, after a while, whose page was not there.
pub fn load(words: &[String]) {
    let [mode, path, seconds, warm] = words else { panic!("MODE FILE SECONDS WARM: {words:?}") };
    let (seconds, warm): (f64, f64) = (seconds.parse().unwrap(), warm.parse().unwrap());
    let file = File::open(path).unwrap();
    advise(&file, libc::POSIX_FADV_DONTNEED);
    advise(&file, libc::POSIX_FADV_RANDOM);
    let page = usize::try_from(page_size()).unwrap();
    let pages = file.metadata().unwrap().len() / page_size();
    let length = usize::try_from(pages).unwrap() * page;
    // SAFETY: a fresh mapping that is never touched.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(base, libc::MAP_FAILED);
    let mut sum = 0.0;
    let each = |rank: u64| {
        sum += (rank as f64).powf(-0.9);
        sum
    };
    let ranks: Vec<f64> = (1..=pages).map(each).collect();
    let mut random = Random(12345, 67890);
    let mut zipf = |among: u64| {
        let at = random.next() * ranks[among as usize - 1];
        let rank = ranks.partition_point(|below| *below < at) as u64;
        // Neighbours in rank are no neighbours in the file; the stride has no divisor in common with the length.
        (rank * 3079 % among, random.next())
    };
    let (began, mut scan, mut misses, mut all) = (Instant::now(), 0, 0u64, 0u64);
    let mut buffer = vec![0; page];
    for n in 0u64.. {
        let now = began.elapsed().as_secs_f64();
        if now >= seconds {
            break;
        }
        let (next, other) = zipf(if mode == "phases" { pages / 2 } else { pages });
        let index = match &**mode {
            "loop" => n % pages,
            "mix" if other < 0.25 => {
                scan += 1;
                scan % (pages / 3)
            }
            "phases" => next + (now as u64 / 2 % 2) * (pages / 2),
            _ => next,
        };
        let mut there = 0u8;
        let at = usize::try_from(index).unwrap() * page;
        // SAFETY: a page of the mapping, and a byte for it.
        let known = unsafe { libc::mincore(base.byte_add(at), page, &raw mut there) };
        assert_eq!(known, 0);
        if now >= warm {
            all += 1;
            misses += u64::from(there & 1 == 0);
        }
        assert!(file.read_at(&mut buffer, at as u64).unwrap() > 0);
    }
    println!("{}", misses as f64 / all as f64);
}

pub fn hierarchy() -> PathBuf {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if v1.join("cgroup.procs").exists() { v1.into() } else { "/sys/fs/cgroup".into() }
}

/// A cgroup with a limit.
struct Group(PathBuf);

impl Group {
    /// `None`: cgroups have no limits here.
    fn new(limit: u64) -> Option<Self> {
        let _ = fs::write(hierarchy().join("cgroup.subtree_control"), "+memory");
        let group = Self(hierarchy().join(format!("what-if-{}", std::process::id())));
        fs::create_dir(&group.0).unwrap();
        let files = ["memory.max", "memory.limit_in_bytes"].map(|name| group.0.join(name));
        let file = files.iter().find(|file| file.exists())?;
        fs::write(file, limit.to_string()).unwrap();
        Some(group)
    }

    fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn name(&self) -> String {
        format!("/{}", self.0.file_name().unwrap().to_str().unwrap())
    }

    fn load(&self, mode: &str, file: &Path, seconds: f64, warm: f64) -> Child {
        let line = format!("echo $$ >'{}/cgroup.procs'; exec \"$@\"", self.0.display());
        let mut command = Command::new("sh");
        command.args(["-c", &line, "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["--load", mode]).arg(file).args([seconds.to_string(), warm.to_string()]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What has just ended may still be in it.
        let begun = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn ratio(load: Child) -> f64 {
    let out = load.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
}

/// What it says of a load, and then what is true: predicted, stated error and truth by scale. `start`: at most so long
/// does it take until it watches.
fn compare(
    mode: &str,
    file: &Path,
    seconds: f64,
    start: f64,
    scales: &[f64],
) -> Option<Vec<(f64, f64, f64, f64)>> {
    let group = Group::new(LIMIT)?;
    let load = group.load(mode, file, seconds + start, (seconds + start) / 2.0);
    std::thread::sleep(Duration::from_secs(2));
    let name = group.0.file_name().unwrap().to_str().unwrap();
    let (code, out, err) = output(&mut cachestat(&format!("--json --what-if {seconds} --cgroup /{name}")));
    assert_eq!(code, Some(0), "{err}");
    let all: Value = serde_json::from_str(&out).unwrap();
    let what_if = &all["what_if"];
    assert_eq!(what_if["cgroup"], format!("/{name}"));
    assert_eq!(what_if["now"]["size_bytes"], LIMIT);
    assert!(what_if["accesses"].as_u64().unwrap() > 0, "{what_if}");
    let now = ratio(load);
    let seen = what_if["now"]["miss_ratio"].as_f64().unwrap();
    assert!((seen - now).abs() < 0.05, "{mode}: counted {seen}, by mincore {now}");
    drop(group);
    let point = |scale: &f64| {
        let curve = what_if["curve"].as_array().expect("a curve");
        let point = curve.iter().find(|p| p["scale"] == *scale).unwrap();
        let bytes = LIMIT as f64 * scale;
        assert_eq!(point["size_bytes"].as_f64(), Some(bytes));
        let group = Group::new(bytes as u64).unwrap();
        let truth = ratio(group.load(mode, file, seconds, seconds / 2.0));
        let [predicted, error] = ["miss_ratio", "error"].map(|key| point[key].as_f64().expect("a figure"));
        (*scale, predicted, error, truth)
    };
    Some(scales.iter().map(point).collect())
}

pub fn what_if(dir: &Path) {
    let long = std::env::var("WHAT_IF").is_ok_and(|v| v == "long");
    let file = cold_file(&dir.join("file"), PAGES);
    // In an emulated machine programs take many seconds to load.
    let (modes, seconds, start, scales): (_, _, _, &[_]) = match long {
        true => ("zipf,mix,loop,phases", 16.0, 20.0, &[0.5, 0.75, 1.25, 1.5, 2.0]),
        false => ("zipf", 4.0, 4.0, &[0.5, 2.0]),
    };
    let set = |name: &str| std::env::var(name).ok();
    let modes = set("WHAT_IF_LOADS").unwrap_or_else(|| modes.into());
    let start = set("WHAT_IF_START").and_then(|v| v.parse().ok()).unwrap_or(start);
    let (mut sum, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
    let mut out = std::io::stdout();
    for mode in modes.split(',') {
        let Some(points) = compare(mode, &file, seconds, start, scales) else {
            println!("skipped: cgroups have no memory limits here");
            return;
        };
        for (scale, predicted, error, truth) in points {
            let off = (predicted - truth).abs();
            writeln!(out, "{mode} x{scale}: predicted {predicted:.3} ± {error:.3}, was {truth:.3}").unwrap();
            (sum, count, worst) = (sum + off, count + 1.0, worst.max(off));
        }
    }
    assert!(sum / count <= 0.02 && worst <= 0.05, "mean error {}, worst {worst}", sum / count);
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|l| l.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// What the machine has cached of files.
fn cached() -> u64 {
    meminfo("Active(file)") + meminfo("Inactive(file)")
}

/// Huge pages take memory away from the cache, and give it back: two MiB each.
fn take_memory(pages: i64) {
    fs::write("/proc/sys/vm/nr_hugepages", pages.to_string()).unwrap();
    let took: i64 = fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap().trim().parse().unwrap();
    assert_eq!(took, pages, "no memory in one piece");
}

/// Without a cgroup: what it says of the machine, and what is true where that has more or less memory.
pub fn what_if_of_a_machine(dir: &Path) {
    let set = |name: &str| std::env::var(name).ok();
    let start: f64 = set("WHAT_IF_START").and_then(|v| v.parse().ok()).unwrap_or(20.0);
    let seconds = 30.0;
    let file = cold_file(&dir.join("file"), OF_A_MACHINE);
    let load = |mode: &str, seconds: f64, warm: f64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--load", mode]).arg(&file).args([seconds.to_string(), warm.to_string()]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    // Half of the file has room, more or less.
    let all = cached() + meminfo("MemFree");
    let base = i64::try_from(all.saturating_sub(80 << 20) >> 21).unwrap();
    let (mut sum, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
    let mut out = std::io::stdout();
    for mode in set("WHAT_IF_LOADS").unwrap_or_else(|| "zipf,mix".into()).split(',') {
        take_memory(base);
        let now = load(mode, seconds + start, (seconds + start) / 2.0);
        std::thread::sleep(Duration::from_secs(4));
        let (code, text, err) = output(&mut cachestat(&format!("--json --what-if {seconds}")));
        assert_eq!(code, Some(0), "{err}");
        let has = cached();
        let now = ratio(now);
        let all: Value = serde_json::from_str(&text).unwrap();
        let what_if = &all["what_if"];
        writeln!(
            out,
            "{mode}: {} MiB cached, misses {} counted, {now:.3} by mincore, followed {}, {}",
            has >> 20,
            what_if["now"]["miss_ratio"],
            what_if["sample_rate"],
            what_if["policy"]
        )
        .unwrap();
        let size = what_if["now"]["size_bytes"].as_f64().unwrap();
        for scale in [0.5, 0.75, 1.25, 1.5] {
            take_memory(base - (size * (scale - 1.0)) as i64 / (2 << 20));
            let truth = ratio(load(mode, seconds, seconds / 2.0));
            let got = cached() as f64 / size;
            let point = what_if["curve"].as_array().expect("a curve");
            let point = point.iter().find(|p| p["scale"] == scale).unwrap();
            let [predicted, error] =
                ["miss_ratio", "error"].map(|key| point[key].as_f64().unwrap_or(f64::NAN));
            writeln!(
                out,
                "{mode} x{scale}: predicted {predicted:.3} ± {error:.3}, was {truth:.3} (x{got:.2} cached)"
            )
            .unwrap();
            let off = (predicted - truth).abs();
            (sum, count, worst) = (sum + off, count + 1.0, worst.max(off));
        }
    }
    take_memory(0);
    assert!(sum / count <= 0.02 && worst <= 0.05, "mean error {}, worst {worst}", sum / count);
}

/// Where next to nothing happens, nothing is said.
pub fn what_if_of_nothing(_: &Path) {
    let options = format!("--what-if 200ms -p {}", std::process::id());
    let (code, out, err) = output(&mut cachestat(&format!("--json {options}")));
    assert_eq!(code, Some(0), "{err}");
    let all: Value = serde_json::from_str(&out).unwrap();
    let what_if = &all["what_if"];
    assert_eq!(what_if["curve"], Value::Null);
    assert!(what_if["reason"].as_str().unwrap().starts_with("not enough seen yet"), "{what_if}");
    let (code, out, _) = output(&mut cachestat(&options));
    assert_eq!(code, Some(0));
    assert!(out.contains("No prediction: not enough seen yet"), "{out}");
}

/// A section of a command's report: the command goes to a cgroup with a limit, and what it would be under others is true.
pub fn what_if_of_a_command(dir: &Path) {
    let file = cold_file(&dir.join("file"), PAGES);
    let Some(group) = Group::new(LIMIT) else {
        println!("skipped: cgroups have no memory limits here");
        return;
    };
    let (report, html) = (dir.join("report.json"), dir.join("report.html"));
    let line = format!("echo $$ >'{}'; exec \"$@\"", group.procs().display());
    let mut command = cachestat("--json --what-if -o");
    command.arg(&report).arg("--html").arg(&html).args(["--", "sh", "-c", &line, "sh"]);
    command.arg(std::env::current_exe().unwrap()).args(["--load", "zipf"]).arg(&file).args(["8", "4"]);
    let (code, out, err) = output(&mut command);
    assert_eq!(code, Some(0), "{err}");
    let now: f64 = out.trim().parse().unwrap();
    let all: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let what_if = &all["what_if"];
    assert_eq!(what_if, &all["runs"][0]["what_if"]);
    assert_eq!(what_if["cgroup"], group.name(), "{what_if}");
    assert_eq!(what_if["limit_bytes"], LIMIT);
    let seen = what_if["now"]["miss_ratio"].as_f64().unwrap();
    assert!((seen - now).abs() < 0.05, "counted {seen}, by mincore {now}");
    // Nothing of the others is among it: what the command read, and what its start took.
    let [accesses, read] = [&what_if["accesses"], &all["read"]["accesses"]].map(|v| v.as_u64().unwrap());
    assert!(accesses >= read && accesses < read + read / 4 + 20_000, "{accesses}, read {read}");
    drop(group);
    for scale in [0.5, 2.0] {
        let curve = what_if["curve"].as_array().expect("a curve");
        let point = curve.iter().find(|p| p["scale"] == scale).unwrap();
        let predicted = point["miss_ratio"].as_f64().expect("a figure");
        let bytes = point["device_bytes_per_s"].as_f64().unwrap();
        let seconds = what_if["seconds"].as_f64().unwrap();
        let all = predicted * accesses as f64 / seconds * page_size() as f64;
        assert!((bytes - all).abs() <= all * 0.01 + 1e4, "{bytes}, {all}");
        let group = Group::new((LIMIT as f64 * scale) as u64).unwrap();
        let truth = ratio(group.load("zipf", &file, 8.0, 4.0));
        println!("a command, x{scale}: predicted {predicted:.3} ± {}, was {truth:.3}", point["error"]);
        assert!((predicted - truth).abs() <= 0.05, "x{scale}: {predicted}, was {truth}");
    }
    let html = fs::read_to_string(&html).unwrap();
    assert!(html.contains("<h3>What if there were more memory") && html.contains("class=\"curve\""));
    // What does next to nothing: no guess.
    let (code, _, err) = output(cachestat("--what-if").args(["--", "true"]));
    assert_eq!(code, Some(0));
    assert!(
        err.contains("What if there were more memory") && err.contains("No prediction: not enough"),
        "{err}"
    );
}

/// Looks random keys up, some much more often than others; what Python itself takes is not in the cgroup.
const SQLITE: &str = "
import os, sqlite3, sys, random, time
path, seconds, group = sys.argv[1], float(sys.argv[2]), sys.argv[3]
db = sqlite3.connect(path)
db.execute('pragma cache_size=-256')
db.execute('pragma mmap_size=0')
look = 'select length(v) from t where k=?'
most = db.execute('select max(k) from t').fetchone()[0]
db.execute(look, (1,)).fetchone()
if sys.argv[4] == 'random':
    for fd in os.listdir('/proc/self/fd'):
        if os.path.realpath('/proc/self/fd/' + fd) == os.path.realpath(path):
            os.posix_fadvise(int(fd), 0, 0, os.POSIX_FADV_RANDOM)
open(group, 'w').write('0')
r, end = random.Random(7), time.time() + seconds
while time.time() < end:
    for _ in range(100):
        db.execute(look, (int(most * r.random() ** 3) * 3079 % most + 1,)).fetchone()
";

const MAKE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('create table t(k integer primary key, v blob)')
db.executemany('insert into t values(?, zeroblob(3000))', ((k,) for k in range(1, 9001)))
db.commit()
";

/// SQLite on a database that the cgroup has no room for, by Python. What is true under the other limits is counted there. With
/// read-ahead, pages that nobody uses take room, and more of it the larger the cache is.
pub fn what_if_of_sqlite(dir: &Path) {
    let python = |script: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(dir.join("db"));
        command
    };
    if !python(MAKE).stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: no Python with SQLite");
        return;
    }
    let long = std::env::var("WHAT_IF").is_ok_and(|v| v == "long");
    let (seconds, scales): (_, &[f64]) =
        if long { (16.0, &[0.5, 0.75, 1.25, 1.5, 2.0]) } else { (6.0, &[0.5, 1.5]) };
    let ask = |limit: u64, how: &str| {
        let group = Group::new(limit)?;
        drop_cache(&File::open(dir.join("db")).unwrap());
        let mut load = python(SQLITE);
        let load = load.arg((seconds + 14.0).to_string()).arg(group.procs()).arg(how);
        let mut load = load.spawn().unwrap();
        // Until the cache is full.
        std::thread::sleep(Duration::from_secs(5));
        let (code, out, err) =
            output(&mut cachestat(&format!("--json --what-if {seconds} --cgroup {}", group.name())));
        load.kill().unwrap();
        load.wait().unwrap();
        assert_eq!(code, Some(0), "{err}");
        let mut all: Value = serde_json::from_str(&out).unwrap();
        Some(all["what_if"].take())
    };
    let mut out = std::io::stdout();
    for how in ["random", "normal"] {
        let (mut sum, mut worst) = (0.0, 0.0_f64);
        let Some(what_if) = ask(LIMIT, how) else {
            println!("skipped: cgroups have no memory limits here");
            return;
        };
        let curve = what_if["curve"].as_array().unwrap_or_else(|| panic!("no curve: {what_if}"));
        for scale in scales {
            let point = curve.iter().find(|p| p["scale"] == *scale).unwrap();
            let [predicted, error] =
                ["miss_ratio", "error"].map(|key| point[key].as_f64().expect("a figure"));
            let other = ask((LIMIT as f64 * scale) as u64, how).unwrap();
            let truth = other["now"]["miss_ratio"].as_f64().unwrap();
            writeln!(out, "sqlite, {how} x{scale}: predicted {predicted:.3} ± {error:.3}, was {truth:.3}")
                .unwrap();
            let off = (predicted - truth).abs();
            (sum, worst) = (sum + off, worst.max(off));
        }
        let mean = sum / scales.len() as f64;
        assert!(mean <= 0.02 && worst <= 0.05, "{how}: mean error {mean}, worst {worst}");
        let told = what_if["notes"].to_string().contains("read ahead and not used");
        assert!(how == "normal" || !told, "{what_if}");
    }
}
