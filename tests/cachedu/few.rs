//! As few open files as a shell may leave.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::setrlimit;
use serde_json::Value;

use super::others::open_dir;
use super::others::root;

/// Wide and deep, with as few open files as a shell may leave: fewer threads, and nothing that is not known.
#[test]
fn few_open_files_cost_threads_and_no_figures() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for a in 0..12 {
        let mut place = dir.path().join(a.to_string());
        for b in 0..7 {
            place.push(b.to_string());
            fs::create_dir_all(&place).unwrap();
            for c in 0..20 {
                fs::write(place.join(format!("f{c}")), "x").unwrap();
                files += 1;
            }
        }
    }
    for threads in ["", "-j 64", "-j 1"] {
        let line =
            format!("ulimit -n 20; exec {} {threads} --json --depth 0 \"$0\"", env!("CARGO_BIN_EXE_cachedu"));
        let out = Command::new("sh").args(["-c", &line]).arg(dir.path()).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && !err.contains("too many open files"), "{threads}: {err}");
        assert_eq!(err.contains("64 threads 1 work"), threads == "-j 64", "{err}");
        let text = String::from_utf8_lossy(&out.stdout);
        let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!((row["files"].as_u64(), row["unknown_files"].as_u64()), (Some(files), Some(0)), "{row}");
    }
}

/// Deeper than there are open files, and each level has more than one directory to come back to.
#[test]
fn few_open_files_and_a_deep_tree() {
    let dir = tempfile::tempdir().unwrap();
    let (mut place, mut files, mut dirs) = (dir.path().to_owned(), 0, 1);
    for _ in 0..100 {
        for side in ["a", "b", "c"] {
            fs::create_dir(place.join(side)).unwrap();
            fs::write(place.join(side).join("f"), "x").unwrap();
            (files, dirs) = (files + 1, dirs + 1);
        }
        place.push("b");
    }
    for (limit, threads) in [(14, "-j 1"), (20, ""), (20, "-j 1"), (64, "-j 8"), (64, "")] {
        let line = format!(
            "ulimit -n {limit}; exec {} {threads} --json --depth 0 \"$0\"",
            env!("CARGO_BIN_EXE_cachedu")
        );
        let out = Command::new("sh").args(["-c", &line]).arg(dir.path()).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{limit} {threads}: {err}");
        let text = String::from_utf8_lossy(&out.stdout);
        let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let found = ["files", "unknown_files", "directories"].map(|key| row[key].as_u64());
        assert_eq!(found, [Some(files), Some(0), Some(dirs)], "{limit} {threads}: {row}");
    }
}

/// A limit of the user's processes, which are threads to the kernel: who may start no more is told so.
#[test]
fn few_threads_are_no_panic() {
    let dir = open_dir();
    let program = dir.path().join("cachedu");
    fs::copy(env!("CARGO_BIN_EXE_cachedu"), &program).unwrap();
    let file = dir.path().join("f");
    fs::write(&file, "x").unwrap();
    // Of nobody there may be other processes. Root is not limited.
    let ours = if root() { 654_321 } else { rustix::process::geteuid().as_raw() };
    std::os::unix::fs::chown(&file, Some(ours), None).unwrap();
    for threads in 1..=8 {
        for line in ["-j 1 --json", "-j 2", "--map -j 1", "--evict --dry-run -j 1"] {
            let mut command = Command::new(&program);
            command.args(line.split(' ')).arg(&file).current_dir("/");
            if root() {
                command.uid(ours).gid(ours);
            }
            let limit = move || {
                let most = Rlimit { current: Some(threads), maximum: Some(threads) };
                setrlimit(Resource::Nproc, most).map_err(Into::into)
            };
            // SAFETY: a system call between fork and exec.
            unsafe { command.pre_exec(limit) };
            // A test beside this one may have forked while the copy was being written.
            let out = loop {
                match command.output() {
                    Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                    out => break out.unwrap(),
                }
            };
            let err = String::from_utf8_lossy(&out.stderr);
            if out.status.success() {
                assert!(threads > 1 && !out.stdout.is_empty(), "{threads} {line}: {err}");
                continue;
            }
            let said = "error: no more threads may be started here\nremedy: allow some more: 'ulimit -u'";
            assert!(out.status.code() == Some(1) && err.contains(said), "{threads} {line}: {err}");
            assert!(threads < 8 || !root(), "{line}: {err}");
        }
    }
}
