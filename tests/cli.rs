//! The command from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

fn cachestat(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachestat"));
    command
        .args(options.split_whitespace())
        .env_remove("COLUMNS")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

fn run(options: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = cachestat(options).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn help() {
    for (name, option) in [("help_short", "-h"), ("help_long", "--help")] {
        let (code, out, err) = run(option);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{option} fits 80 columns");
        insta::assert_snapshot!(name, out);
    }
}

#[test]
fn version() {
    let expected = format!("cachestat {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run("-V"), (Some(0), expected, String::new()));
}

#[test]
fn manual_and_completions() {
    let (code, man, _) = run("--generate man");
    assert_eq!(code, Some(0));
    insta::assert_snapshot!("man", man.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    for (shell, part) in
        [("bash", "complete -F _cachestat"), ("zsh", "#compdef cachestat"), ("fish", "complete -c cachestat")]
    {
        let (code, out, _) = run(&format!("--generate {shell}"));
        assert_eq!(code, Some(0));
        assert!(out.contains(part), "{shell}: {out}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_says_why() {
    let mut all = String::new();
    for options in [
        "0",
        "-1",
        "nan",
        "inf",
        "1e400",
        "abc",
        "0,5",
        "31536001",
        "0.001",
        "1 0",
        "1 -3",
        "1 2 3",
        "--json --csv",
        "--csv --bcc",
        "--json -x",
        "--bcc --columns hits",
        "--columns hits,rubbish",
        "--columns hits,hits",
        "--top 3",
        "--by file",
        "--engine turbo",
        "--engine both --bcc",
        "--table-size 0",
        "-p 0",
        "-p abc",
    ] {
        let (code, out, err) = run(options);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{options}: {err}");
        all += &format!("$ cachestat {options}\n{}\n", err.lines().next().unwrap_or_default());
    }
    insta::assert_snapshot!("usage_errors", all);
}

#[test]
fn a_process_that_is_not_there() {
    let (code, out, err) = run("-p 2147483647");
    assert_eq!(out, "");
    if err.contains("container") {
        // Ids mean something else here, and it says so.
        assert_eq!(code, Some(1));
        return;
    }
    assert_eq!(code, Some(2));
    assert_eq!(
        err,
        "cachestat: error: there is no process 2147483647\nremedy: 'ps -e' lists the processes that there are\n"
    );
}

#[test]
fn a_thread_is_not_a_process() {
    let pid = std::process::id();
    // The test runs in a thread of its own, so there is at least one that is not the leader.
    let tid = std::fs::read_link("/proc/thread-self").unwrap();
    let tid = tid.file_name().unwrap().to_str().unwrap();
    assert_ne!(tid, pid.to_string());
    let (code, _, err) = run(&format!("-p {tid}"));
    if err.contains("container") {
        return;
    }
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains(&format!("{tid} is a thread of process {pid}")), "{err}");
    assert!(err.contains(&format!("remedy: -p {pid}")), "{err}");
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = cachestat("--generate man").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("cannot write the output: No space left on device"), "{err}");

    let (writer, reader) = UnixStream::pair().unwrap();
    drop(reader);
    let output = cachestat("--generate man").stdout(OwnedFd::from(writer)).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn without_privilege_it_says_what_to_do() {
    let mut command = cachestat("1 1");
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = match command.output() {
        Ok(output) => output,
        // The program lies where only root may enter.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return,
        Err(e) => panic!("{e}"),
    };
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{err}");
    assert!(err.starts_with("cachestat: error: ") && err.contains("\nremedy: "), "{err}");
}
