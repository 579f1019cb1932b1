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

/// How many tests may fail once and pass when run again, of some eighty: more is no accident. The machine is not theirs alone: others
/// evict pages at any moment (DAMON, where somebody has set it up so), and hold processors for seconds.
const TOLERATED: usize = 2;

/// A test: its name and what it does in a directory of its own.
pub type Test = (&'static str, fn(&Path));

/// What a test that failed has left: processes, which would hold our output open and count beside the tests that come after it, and
/// cgroups, which are named after this process, and would be in its way when it runs again.
fn end_what_is_left() {
    for thread in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in text.split_whitespace().map(|pid| pid.parse().unwrap()) {
            // SAFETY: they are our own children, and nobody else waits for them any more.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        }
    }
    let own = std::process::id().to_string();
    for top in ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"] {
        for entry in fs::read_dir(top).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().split('-').any(|part| part == own) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Runs those of the tests whose names contain one of the words, or all, each in a directory of its own below `dir`.
pub fn run(tests: &[Test], words: &[String], dir: &Path) -> ExitCode {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("these tests load BPF programs: run them as root");
        return ExitCode::FAILURE;
    }
    let (mut failed, mut again) = (Vec::new(), Vec::new());
    let wanted = |name: &str| words.is_empty() || words.iter().any(|w| name.contains(w.as_str()));
    for (name, test) in tests.iter().filter(|(name, _)| wanted(name)) {
        let passes = |place: &str| {
            let (start, place) = (Instant::now(), dir.join(place));
            fs::create_dir(&place).unwrap();
            let ok = std::panic::catch_unwind(|| test(&place)).is_ok();
            if !ok {
                end_what_is_left();
            }
            println!("{} {name} ({:.1} s)", if ok { "ok  " } else { "FAIL" }, start.elapsed().as_secs_f64());
            ok
        };
        if passes(name) {
            continue;
        }
        // Once more than may be is enough to know.
        if again.len() <= TOLERATED && passes(&format!("{name}.again")) {
            again.push(*name);
        } else {
            failed.push(*name);
        }
    }
    if !again.is_empty() {
        println!("passed when run again: {}", again.join(" "));
    }
    if again.len() > TOLERATED {
        failed.extend(again);
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(" "));
    ExitCode::FAILURE
}
