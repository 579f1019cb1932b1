//! What the tests that run the command share.
#![allow(dead_code, unused_imports)] // each of them uses a part

mod files;
mod json;
mod loss;
mod monitor;
mod readers;
pub mod schema;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

pub use files::*;
pub use json::*;
pub use loss::*;
pub use monitor::*;
pub use readers::*;

/// For whatever must happen soon, on a machine that may be busy, and emulated.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        sleep(Duration::from_millis(5));
    }
}

/// A test: its name and what it does in a directory of its own.
pub type Test = (&'static str, fn(&Path));

/// Runs those of the tests whose names contain one of the words, or all, each in a directory of its own below `dir`.
pub fn run(tests: &[Test], words: &[String], dir: &Path) -> ExitCode {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("these tests load BPF programs: run them as root");
        return ExitCode::FAILURE;
    }
    let mut failed = Vec::new();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()));
    for (name, test) in tests.iter().filter(|(name, _)| wanted(name)) {
        let start = Instant::now();
        let place = dir.join(name);
        fs::create_dir(&place).unwrap();
        let ok = std::panic::catch_unwind(|| test(&place)).is_ok();
        println!("{} {name} ({:.1} s)", if ok { "ok  " } else { "FAIL" }, start.elapsed().as_secs_f64());
        if !ok {
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(" "));
    ExitCode::FAILURE
}
