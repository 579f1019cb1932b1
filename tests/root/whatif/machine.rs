//! `root --machine`, in a virtual machine of some hundred MiB that does nothing else: of the whole machine, of whose memory a process
//! holds a part.

use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::ratio;
use crate::tools::*;

const PAGES: u64 = 32768;

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

/// `root --hold MIB`: memory that is held until standard input ends.
pub fn hold(words: &[String]) {
    let bytes = words[0].parse::<usize>().unwrap() << 20;
    // SAFETY: a fresh mapping.
    let held = unsafe {
        let (write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let at = libc::mmap(std::ptr::null_mut(), bytes.max(1), write, private, -1, 0);
        at != libc::MAP_FAILED && libc::mlock(at, bytes.max(1)) == 0
    };
    assert!(held, "{}", std::io::Error::last_os_error());
    println!("held");
    std::io::stdin().lines().for_each(drop);
}

/// Takes memory away from the cache for as long as it lives.
struct Held(Child);

impl Held {
    fn new(mib: i64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--hold", &mib.max(0).to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(child)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Without a cgroup: what it says of the machine, and what is true where that has more or less memory.
pub fn what_if_of_a_machine(dir: &Path) {
    let set = |name: &str| std::env::var(name).ok();
    let start: f64 = set("WHAT_IF_START").and_then(|v| v.parse().ok()).unwrap_or(20.0);
    let seconds = 30.0;
    let file = cold_file(&dir.join("file"), PAGES);
    let load = |mode: &str, seconds: f64, warm: f64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--load", mode]).arg(&file).args([seconds.to_string(), warm.to_string()]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    // Half of the file has room, more or less.
    let all = cached() + meminfo("MemFree");
    let base = i64::try_from(all.saturating_sub(120 << 20) >> 20).unwrap();
    let (mut sum, mut count, mut worst) = (0.0, 0.0, 0.0_f64);
    let mut out = std::io::stdout();
    for mode in set("WHAT_IF_LOADS").unwrap_or_else(|| "zipf,mix".into()).split(',') {
        let mut held = Some(Held::new(base));
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
            // The monitor is gone, and its memory with it: what there is is brought to what is asked about.
            let mut hold = base - (size * (scale - 1.0)) as i64 / (1 << 20);
            for _ in 0..2 {
                drop(held.take());
                held = Some(Held::new(hold));
                ratio(load(mode, 15.0, 14.0));
                hold += (cached() as i64 - (size * scale) as i64) / (1 << 20);
            }
            drop(held.take());
            held = Some(Held::new(hold));
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
    assert!(sum / count <= 0.02 && worst <= 0.05, "mean error {}, worst {worst}", sum / count);
}
