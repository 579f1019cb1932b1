//! What a tick costs the monitor while its table is full of threads that sleep.
//!
//! `cargo bench --bench sleepers [-- THREADS [OPTIONS OF CACHESTAT]…]`, as root. Starts `cachestat --json 1`, then
//! threads (10000) that read once and sleep, and prints the monitor's CPU time for each tick, from
//! `/proc/PID/schedstat`, and its memory. Ends with 1 where a tick takes more than 2 ms or memory more than 15 MiB.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::process::ExitCode;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Barrier;
use std::time::Duration;

const TICKS: u64 = 10;

/// Nanoseconds on a CPU so far.
fn cpu(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn memory(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|l| l.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).filter(|w| w != "--bench");
    let threads: usize = words.next().map_or(10_000, |n| n.parse().expect("THREADS is a number"));
    let options: Vec<String> = words.collect();
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_cachestat"))
        .args(options)
        .args(["--json", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let file = Arc::new(File::open("/proc/self/exe").unwrap());
    let all = Arc::new(Barrier::new(threads + 1));
    for _ in 0..threads {
        let (file, all) = (Arc::clone(&file), Arc::clone(&all));
        let work = move || {
            file.read_exact_at(&mut [0; 512], 4096).unwrap();
            all.wait();
            loop {
                std::thread::park();
            }
        };
        std::thread::Builder::new().stack_size(16 << 10).spawn(work).expect("a thread");
    }
    all.wait();
    // Lines are read as they come, so that the pipe is never full; time passes by the clock.
    std::thread::spawn(move || lines.for_each(drop));
    std::thread::sleep(Duration::from_secs(3));
    let pid = monitor.id();
    let before = cpu(pid);
    std::thread::sleep(Duration::from_secs(TICKS));
    let tick = (cpu(pid) - before) / TICKS;
    let (rss, own) = (memory(pid, "VmRSS"), memory(pid, "RssAnon"));
    println!(
        "{threads} threads: {} us of CPU a tick, {rss} KiB resident ({own} KiB of it its own)",
        tick / 1000
    );
    let _ = monitor.kill();
    let _ = monitor.wait();
    if tick > 2_000_000 || rss > 15 << 10 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
