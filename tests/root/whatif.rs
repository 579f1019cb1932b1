//! `--what-if` against the truth: the same load once more, under the other limit, with `mincore` before each read.
//!
//! `WHAT_IF=long` tries more loads, sizes and time, and prints the tables of docs/guide/what-if.md (`WHAT_IF=far` that of a small
//! limit alone); `WHAT_IF_LOADS=zipf,mix` some of them, `WHAT_IF_SKIP=1000` other random numbers,
//! `WHAT_IF_SECONDS=16` where little happens in a second; `WHAT_IF_START=60` where it takes so many seconds until programs are loaded, for
//! databases and the machine.

pub mod databases;
mod load;
pub mod machine;
pub mod shared;

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use self::load::ENDS_WITH_INPUT;
use self::load::Journal;
pub use self::load::load;
use crate::tools::*;

const PAGES: u64 = 8192;
const LIMIT: u64 = 14 << 20;
/// Of which four times as much is less than the file still: it says nothing of a cache that everything fits into.
const SMALL_LIMIT: u64 = 6 << 20;

/// khugepaged makes huge pages of the memory of processes every ten seconds, and from 7.2 on of any file that they have mapped, which it
/// reads for that on the machine's account: both change what a limit has room for, at other times in each run.
fn without_huge_pages(command: &mut Command) -> &mut Command {
    let forbid = || {
        // SAFETY: takes numbers. It goes on in what is executed, and in children of that.
        match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: a system call, between fork and exec.
    unsafe { command.pre_exec(forbid) }
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

    /// One below it, without a limit of its own.
    fn below(&self, name: &str) -> Self {
        let _ = fs::write(self.0.join("cgroup.subtree_control"), "+memory");
        let group = Self(self.0.join(name));
        fs::create_dir(&group.0).unwrap();
        group
    }

    fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    fn name(&self) -> String {
        format!("/{}", self.0.strip_prefix(hierarchy()).unwrap().to_str().unwrap())
    }

    /// Pages of files that are charged to it.
    fn cached(&self) -> u64 {
        let stat = fs::read_to_string(self.0.join("memory.stat")).unwrap();
        let of = |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.parse::<u64>().ok());
        of("file ").or_else(|| of("cache ")).expect("what is cached") / page_size()
    }

    fn load(&self, mode: &str, file: &Path, seconds: f64, warm: f64) -> Child {
        self.command(mode, file, seconds, warm).spawn().unwrap()
    }

    /// One that lasts until somebody waits for it, at most so long.
    fn load_for_now(&self, mode: &str, file: &Path, longest: f64, warm: f64) -> Child {
        let mut command = self.command(mode, file, longest, warm);
        command.env(ENDS_WITH_INPUT, "").stdin(Stdio::piped()).spawn().unwrap()
    }

    fn command(&self, mode: &str, file: &Path, seconds: f64, warm: f64) -> Command {
        let line = format!("echo $$ >'{}/cgroup.procs'; exec \"$@\"", self.0.display());
        let mut command = Command::new("sh");
        without_huge_pages(&mut command).args(["-c", &line, "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["--load", mode]).arg(file).args([seconds.to_string(), warm.to_string()]);
        command.stdout(Stdio::piped());
        command
    }
}

/// The share of a load's accesses whose page was not there, under this limit. All that is there of the file is to be charged to it, but
/// for what is not known of a few pages a processor.
fn under(limit: u64, mode: &str, file: &Path, seconds: f64) -> f64 {
    let group = Group::new(limit).unwrap();
    // What is written takes time: it has to be long until all is there that there is room for.
    let seconds = if mode == "writes" { 2.0 * seconds } else { seconds };
    let truth = ratio(group.load(mode, file, seconds, seconds / 2.0));
    let journal = File::open(Journal::beside(file)).map_or(0, |file| resident(&file));
    let (there, charged) = (resident(&File::open(file).unwrap()), group.cached().saturating_sub(journal));
    assert!(
        there <= charged + 128 + there / 32,
        "{mode}: {there} pages are there, {charged} of them charged"
    );
    truth
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
    said(load).0
}

/// What a load prints at its end. Its input is closed first.
fn said(load: Child) -> (f64, f64) {
    let out = load.wait_with_output().unwrap();
    assert!(out.status.success());
    told(&String::from_utf8(out.stdout).unwrap())
}

fn told(text: &str) -> (f64, f64) {
    let (ratio, waited) = text.trim().split_once(' ').unwrap();
    (ratio.parse().unwrap(), waited.parse().unwrap())
}

/// What it says of a load, and then what is true: predicted, stated error and truth by scale.
fn compare(
    mode: &str,
    file: &Path,
    seconds: f64,
    limit: u64,
    scales: &[f64],
) -> Option<Vec<(f64, f64, f64, f64)>> {
    let group = Group::new(limit)?;
    let load = group.load_for_now(mode, file, seconds + LONGEST_START, seconds);
    std::thread::sleep(Duration::from_secs(2));
    let name = group.0.file_name().unwrap().to_str().unwrap();
    let (code, out, err) = output(&mut cachestat(&format!("--json --what-if {seconds} --cgroup /{name}")));
    assert_eq!(code, Some(0), "{err}");
    let all: Value = serde_json::from_str(&out).unwrap();
    let what_if = &all["what_if"];
    assert!(all.as_object().is_some_and(|keys| keys.len() == 1));
    crate::tools::schema::check_as("what_if", what_if);
    assert_eq!(what_if["cgroup"], format!("/{name}"));
    assert_eq!(what_if["now"]["size_bytes"], limit);
    assert!(what_if["accesses"].as_u64().unwrap() > 0, "{what_if}");
    let now = ratio(load);
    let seen = what_if["now"]["miss_ratio"].as_f64().unwrap();
    assert!((seen - now).abs() < 0.05, "{mode}: counted {seen}, by mincore {now}");
    drop(group);
    let point = |scale: &f64| {
        let curve = what_if["curve"].as_array().unwrap_or_else(|| panic!("{mode}: no curve: {what_if}"));
        let point = curve.iter().find(|p| p["scale"] == *scale).unwrap();
        let bytes = limit as f64 * scale;
        assert_eq!(point["size_bytes"].as_f64(), Some(bytes));
        let [Some(predicted), Some(error)] = ["miss_ratio", "error"].map(|key| point[key].as_f64()) else {
            println!("{mode} x{scale}: not enough seen yet"); // an emulated machine may have other things to do
            return None;
        };
        let truth = under(bytes as u64, mode, file, seconds);
        Some((*scale, predicted, error, truth))
    };
    Some(scales.iter().filter_map(point).collect())
}

/// Seconds that it takes at most until programs are loaded, and what is said of a watch is printed. A load ends when that has come.
const LONGEST_START: f64 = 120.0;

fn of_environment(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

fn is_long() -> bool {
    std::env::var("WHAT_IF").is_ok_and(|v| v == "long" || v == "far")
}

/// Limits, and the sizes that are compared under each.
fn sizes() -> &'static [(u64, &'static [f64])] {
    const ALL: [(u64, &[f64]); 2] = [(LIMIT, &[0.5, 0.75, 1.25, 1.5, 2.0]), (SMALL_LIMIT, &[0.5, 2.0, 4.0])];
    match std::env::var("WHAT_IF").as_deref() {
        Ok("long") => &ALL,
        Ok("far") => &ALL[1..],
        _ => &[(LIMIT, &[0.5, 2.0])],
    }
}

pub fn what_if(dir: &Path) {
    let modes = if is_long() { "zipf,mix,loop,phases" } else { "zipf" };
    against_reruns(dir, &std::env::var("WHAT_IF_LOADS").unwrap_or_else(|_| modes.into()));
}

/// Databases write what they have read, and a journal.
pub fn what_if_of_writes(dir: &Path) {
    against_reruns(dir, "writes");
}

fn against_reruns(dir: &Path, modes: &str) {
    let file = cold_file(&dir.join("file"), PAGES);
    let seconds = of_environment("WHAT_IF_SECONDS").unwrap_or(if is_long() { 16.0 } else { 4.0 });
    let (mut sum, mut count, mut worst, mut beyond) = (0.0, 0.0, 0.0_f64, 0);
    let cells: usize = sizes().iter().map(|(_, scales)| scales.len()).sum();
    let asked = modes.split(',').count() * cells;
    let mut out = std::io::stdout();
    for (mode, (limit, scales)) in modes.split(',').flat_map(|mode| sizes().iter().map(move |of| (mode, *of)))
    {
        let Some(points) = compare(mode, &file, seconds, limit, scales) else {
            println!("skipped: cgroups have no memory limits here");
            return;
        };
        for (scale, predicted, error, truth) in points {
            let off = (predicted - truth).abs();
            let of = format!("{mode} x{scale} of {} MiB", limit >> 20);
            writeln!(out, "{of}: predicted {predicted:.3} ± {error:.3}, was {truth:.3}").unwrap();
            (sum, count, worst) = (sum + off, count + 1.0, worst.max(off));
            beyond += i32::from(off > error);
        }
    }
    writeln!(out, "mean difference {:.4}, worst {worst:.3}, {beyond} beyond the stated error", sum / count)
        .unwrap();
    assert!(2.0 * count >= asked as f64, "{count} of {asked} predictions");
    // It is twice a standard error, and more.
    assert!(f64::from(beyond) <= count / 20.0, "{beyond} of {count} beyond the stated error");
    // Of two sizes, the mean is what the worse of them makes it.
    let most = if cells > 2 { 0.02 } else { 0.03 };
    assert!(sum / count <= most && worst <= 0.05, "mean error {}, worst {worst}", sum / count);
}

/// How many threads would wait, against what the one that reads knows of its time; and the page of HTML has what is said.
pub fn waiting_of_what_if(dir: &Path) {
    let file = cold_file(&dir.join("file"), PAGES);
    let Some(group) = Group::new(LIMIT) else {
        println!("skipped: cgroups have no memory limits here");
        return;
    };
    let seconds = 6.0;
    let load = group.load_for_now("zipf", &file, seconds + LONGEST_START, 4.0);
    std::thread::sleep(Duration::from_secs(2));
    let page = dir.join("page.html");
    let mut command = cachestat(&format!("--json --latency --what-if {seconds} --cgroup {}", group.name()));
    // As if through sudo: the page is to be its user's, though the directory is not.
    command.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]).arg("--html").arg(&page);
    let (code, out, err) = output(&mut command);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(fs::metadata(&page).unwrap().uid(), 65534);
    let (ratio, waited) = said(load);
    let all: Value = serde_json::from_str(&out).unwrap();
    let what_if = &all["what_if"];
    let curve = what_if["curve"].as_array().expect("a curve");
    let of = |key: &str, scale: f64| curve.iter().find(|p| p["scale"] == scale).unwrap()[key].as_f64();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("What if there were more memory") && text.contains("class=\"curve\""));
    let size = format!("<td data-t=\"misses\" data-n=\"{}\">", of("miss_ratio", 0.5).unwrap());
    assert!(text.contains(&size), "{size}");
    let notes = what_if["notes"].as_array().unwrap();
    let unknown = notes.iter().any(|n| n == "how long reads waited is not known on this kernel");
    let (now, half) = (of("waiting", 1.0), of("waiting", 0.5));
    println!("predicted {now:?} waiting, it waited {waited:.3} of its time for {ratio:.3} of its reads");
    if unknown {
        assert_eq!((now, half), (None, None), "{what_if}");
        assert!(!text.contains("threads waiting"));
        return;
    }
    let (now, half) = (now.unwrap(), half.unwrap());
    assert!((now - waited).abs() <= 0.05 + waited / 10.0, "{now}, it waited {waited}");
    assert!(half > now && text.contains("threads waiting"), "{what_if}");
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

/// What a report has found, if it has.
fn finding<'a>(report: &'a Value, id: &str) -> Option<&'a Value> {
    report["findings"].as_array().unwrap().iter().find(|f| f["id"] == id)
}

/// Of a loop over four times as much as there is room for, and more, twice the memory keeps nothing; and so it is said.
pub fn what_if_of_a_loop(dir: &Path) {
    const SMALL: u64 = LIMIT / 2;
    let file = cold_file(&dir.join("file"), PAGES);
    let Some(group) = Group::new(SMALL) else {
        println!("skipped: cgroups have no memory limits here");
        return;
    };
    let report = dir.join("report.json");
    let line = format!("echo $$ >'{}'; exec \"$@\"", group.procs().display());
    let mut command = cachestat("--json --what-if -o");
    command.arg(&report).args(["--", "sh", "-c", &line, "sh"]).arg(std::env::current_exe().unwrap());
    let (code, out, err) = output(command.args(["--load", "loop"]).arg(&file).args(["8", "4"]));
    assert_eq!(code, Some(0), "{err}");
    let now = told(&out).0;
    let all: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    drop(group);
    let found = finding(&all, "memory-would-not-help").unwrap_or_else(|| panic!("{}", all["what_if"]));
    let twice = under(2 * SMALL, "loop", &file, 8.0);
    println!("a loop: {now:.3} missed, {twice:.3} with twice the memory; {}", found["evidence"]);
    assert!((twice - now).abs() < 0.05 && now > 0.9, "{now}, with twice the memory {twice}");
    assert_eq!(finding(&all, "memory-would-help"), None);
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
    let now = told(&out).0;
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
        let wanted = predicted * accesses as f64 / seconds * page_size() as f64;
        assert!((bytes - wanted).abs() <= wanted * 0.01 + 1e4, "{bytes}, {wanted}");
        let truth = under((LIMIT as f64 * scale) as u64, "zipf", &file, 8.0);
        println!("a command, x{scale}: predicted {predicted:.3} ± {}, was {truth:.3}", point["error"]);
        assert!((predicted - truth).abs() <= 0.05, "x{scale}: {predicted}, was {truth}");
        if scale == 2.0 {
            // It said so, and so it is.
            let found = finding(&all, "memory-would-help").expect("a finding");
            assert_eq!(found["evidence"]["miss_ratio_doubled"], point["miss_ratio"], "{found}");
            assert!(truth < now / 2.0, "{truth} with twice the memory, {now} without");
        }
    }
    assert_eq!(finding(&all, "memory-would-not-help"), None);
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
