//! The stories that this product exists for, each told again in a guest with a slow disk, and what `cachestat --
//! COMMAND` finds in it, by the names of the findings.
//!
//! `stories [SUBSTR]...` in a guest of `tests/vm` only: caches are emptied, settings of disks changed, and the kernel's
//! NFS server taken over. The disk of ext4 must be slow, so that cold is slower than warm whatever the host has cached, in
//! emulation, too; that of xfs is not: `--fs ext4,xfs
//! --qemu '-set drive.ext4.throttling.iops-read=25 -set drive.ext4.throttling.bps-read=524288'`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod cached;
mod causes;
#[path = "../truth/fuse.rs"]
mod fuse;
mod held;
mod nfs;
mod pressure;
#[path = "../tools/schema.rs"]
mod schema;
mod sparse;
#[path = "../truth/sys.rs"]
#[allow(dead_code)]
mod sys;
mod tell;
mod trees;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::Value;

pub const MIB: u64 = 1 << 20;
pub const PAGE: u64 = 4096;

/// A file of some size, written to its disk and out of the cache.
pub fn cold_file(dir: &Path, name: &str, size: u64) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, vec![7; usize::try_from(size).unwrap()]).unwrap();
    let file = fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    sys::advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
    path
}

type Story = fn(&Path);

const STORIES: &[(&str, Story)] = &[
    ("dd_twice", tell::dd_twice),
    ("dd_direct", tell::dd_direct),
    ("dd_direct_and_not", tell::dd_direct_and_not),
    ("every_14th_page", tell::every_14th_page),
    ("read_ahead_of_ext4", tell::read_ahead_of_ext4),
    ("read_ahead_of_nfs", tell::read_ahead_of_nfs),
    ("filled_at_open", tell::filled_at_open),
    ("mapped_at_once", tell::mapped_at_once),
    ("warmed_by_another", tell::warmed_by_another),
    ("a_daemon_still_belongs", tell::a_daemon_still_belongs),
    ("throttled", pressure::throttled),
    ("too_large_for_its_cgroup", pressure::too_large_for_its_cgroup),
    ("mapped", pressure::mapped),
    ("wasted", pressure::wasted),
    ("only_metadata", pressure::only_metadata),
    ("warmed_up", pressure::warmed_up),
    ("in_parallel", pressure::in_parallel),
    ("du_cold_and_warm", trees::du_cold_and_warm),
    ("a_server_is_slow", causes::a_server_is_slow),
    ("a_processor_is_shared", causes::a_processor_is_shared),
    ("a_processor_is_shared_by_short_lives", causes::a_processor_is_shared_by_short_lives),
    ("lost_in_between", causes::lost_in_between),
    ("a_process_that_sleeps", causes::a_process_that_sleeps),
    ("a_sparse_file", sparse::a_sparse_file),
    ("metadata_twice", cached::metadata_twice),
    ("overlay_copies", cached::overlay_copies),
    ("dropped_behind", cached::dropped_behind),
    ("in_memory", cached::in_memory),
    ("swapped_out", held::swapped_out),
    ("bounded_by_io_max", held::bounded_by_io_max),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, path] = words.as_slice() {
        let act: Option<fn(&str)> = match mode.as_str() {
            "--direct" => Some(tell::read_direct),
            "--write-direct" => Some(tell::write_direct),
            "--lock" => Some(tell::lock),
            "--populate" => Some(tell::populate),
            "--map" => Some(pressure::map),
            "--will-need" => Some(pressure::will_need),
            "--spin" => Some(causes::spin),
            "--forks" => Some(causes::forks),
            "--forget" => Some(causes::forget),
            "--swapped" => Some(held::swapped),
            "--drop-behind" => Some(cached::drop_behind),
            _ => None,
        };
        if let Some(act) = act {
            act(path);
            return ExitCode::SUCCESS;
        }
    }
    if !Path::new("/modules").exists() {
        eprintln!("stories: in a guest of tests/vm only: they empty caches and change settings of disks");
        return ExitCode::FAILURE;
    }
    let dir = PathBuf::from("/mnt/ext4/stories");
    fs::create_dir_all(&dir).unwrap();
    // What has been the default always; newer kernels read 8 MiB ahead of a disk that rotates, which is all of a file here, in one
    // request: a disk that is slow by requests and bytes in a second lets it pass whole when it had nothing to do before.
    fs::write(tell::setting_of(&dir), "128").unwrap();
    let mut failed = 0;
    for (name, story) in
        STORIES.iter().filter(|(n, _)| words.is_empty() || words.iter().any(|w| n.contains(w)))
    {
        let began = Instant::now();
        let told = std::panic::catch_unwind(|| story(&dir)).is_ok();
        failed += u32::from(!told);
        println!("{} {name} ({:.1} s)", if told { "ok" } else { "FAIL" }, began.elapsed().as_secs_f64());
    }
    println!("{} stories, {failed} failed", STORIES.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a report says.
pub struct Told(pub Value);

impl Told {
    /// Names of the findings.
    pub fn findings(&self) -> Vec<&str> {
        self.0["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect()
    }

    pub fn has(&self, id: &str) -> &Value {
        let all = self.0["findings"].as_array().unwrap();
        all.iter().find(|f| f["id"] == id).unwrap_or_else(|| panic!("no {id} in {}", self.short()))
    }

    pub fn has_not(&self, id: &str) {
        assert!(!self.findings().contains(&id), "{id} in {}", self.short());
    }

    /// The verdict names this cause first, with a share of the time (of two runs: of the difference) in this range.
    pub fn because(&self, id: &str, shares: std::ops::RangeInclusive<f64>) {
        let first = &self.0["verdict"]["causes"][0];
        assert_eq!(first["id"], id, "{}", self.0["verdict"]);
        let share = first["share"].as_f64().unwrap_or_else(|| panic!("no share in {}", self.0["verdict"]));
        assert!(shares.contains(&share), "{shares:?}: {}", self.0["verdict"]);
    }

    /// The share that the verdict gives to a cause; `None`: unknown.
    pub fn share(&self, id: &str) -> Option<f64> {
        let causes = self.0["verdict"]["causes"].as_array().unwrap();
        causes.iter().find(|c| c["id"] == id).and_then(|c| c["share"].as_f64())
    }

    /// What the verdict says in words.
    pub fn says(&self, words: &str) {
        let text = self.0["verdict"]["text"].as_str().unwrap();
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }

    /// A figure as `/read/hits`.
    pub fn n(&self, at: &str) -> u64 {
        self.0.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {at} in {}", self.short()))
    }

    pub fn x(&self, at: &str) -> f64 {
        self.0.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {at} in {}", self.short()))
    }

    /// Without what is long.
    pub fn short(&self) -> String {
        let mut value = self.0.clone();
        for key in ["runs", "timeline", "latency", "processes", "unknown"] {
            value[key] = Value::Null;
        }
        value.to_string()
    }
}

/// The last report, which is as published.
pub fn read() -> Told {
    let report: Value = serde_json::from_str(&fs::read_to_string("/tmp/report.json").unwrap()).unwrap();
    schema::check_report(&report);
    Told(report)
}

/// Runs `cachestat --json -o FILE -p PID --for TIME` and reads what it says.
pub fn told_of(pid: u32, time: &str) -> Told {
    let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cachestat").into());
    let mut c = Command::new(cachestat);
    let out =
        c.args(["--json", "-o", "/tmp/report.json", "--for", time, "-p", &pid.to_string()]).output().unwrap();
    assert!(out.status.success(), "-p {pid}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    let told = read();
    println!("  -p {pid}: {:?}; verdict: {}", told.findings(), told.0["verdict"]);
    told
}

/// Runs `cachestat --json -o FILE OPTIONS -- COMMAND` and reads what it says.
pub fn told(options: &str, command: &[&str]) -> Told {
    let cachestat = std::env::var("CACHESTAT").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cachestat").into());
    let mut c = Command::new(cachestat);
    c.args(["--json", "-o", "/tmp/report.json"]).args(options.split_whitespace()).arg("--").args(command);
    let out = c.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{options} -- {command:?}: {}: {err}", out.status);
    let told = read();
    println!(
        "  {options} -- {}: wall {:.2} s, waits: data {:.2} metadata {:.2} look-ups {} cpu {:.2} unexplained {}; {:?}",
        command.join(" "),
        told.x("/wall_s"),
        told.x("/time_parts/data_s"),
        told.x("/time_parts/metadata_s"),
        told.0["time_parts"]["lookups_s"],
        told.x("/time_parts/cpu_s"),
        told.0["time_parts"]["unexplained_s"],
        told.findings(),
    );
    println!("  verdict: {}", told.0["verdict"]);
    for difference in told.0["differences"].as_array().unwrap() {
        println!("  difference {difference}");
    }
    told
}
