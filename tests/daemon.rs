//! `cachetopd` from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used)]

#[path = "outside/mod.rs"]
mod outside;

use outside::Program;

const CACHETOPD: Program =
    Program { path: env!("CARGO_BIN_EXE_cachetopd"), name: "cachetopd", snapshots: "daemon__" };

#[test]
fn help() {
    CACHETOPD.help();
}

#[test]
fn version() {
    CACHETOPD.version();
}

#[test]
fn manual_and_completions() {
    CACHETOPD.manual_and_completions();
}

#[test]
fn a_directory_has_one_text_file() {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::FlockOperation;
    let dir = tempfile::tempdir().unwrap();
    let mut lock = std::fs::OpenOptions::new();
    let lock = lock.write(true).create(true).truncate(false).mode(0o600);
    let other = lock.open(dir.path().join(".cachetopd.lock")).unwrap();
    rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    let err = CACHETOPD.refused(&format!("--listen none --textfile {}", dir.path().display()));
    assert!(err.contains("another one writes its text file there\nremedy: "), "{err}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn wrong_usage_ends_with_2_and_says_why() {
    let mut all = String::new();
    for options in [
        "1",
        "--listen rubbish",
        "--listen 0.0.0.0:9950",
        "--listen [::]:9950",
        "--listen none",
        "--record-size 1G",
        "--record /tmp --record-size 1M",
        "--record /tmp --record-size many",
        "--record /tmp --record-days 0",
        "--textfile /no/such/directory --listen none",
        "-i 0",
        "--series -1",
        "--then true",
        "--otlp 127.0.0.1:4318",
        "--otlp https://collector:4318",
        "--otlp none --listen none",
        "--when misses",
        "--when wall>1",
        "--when misses>1/h",
        "--when misses>1 --when misses>1",
    ] {
        let err = CACHETOPD.refused(options);
        all += &format!("$ cachetopd {options}\n{}\n", err.lines().next().unwrap_or_default());
    }
    insta::assert_snapshot!("usage_errors", all);
}
