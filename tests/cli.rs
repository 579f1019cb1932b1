//! The command from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used)]

#[path = "outside/mod.rs"]
mod outside;

use outside::Program;

const CACHESTAT: Program =
    Program { path: env!("CARGO_BIN_EXE_cachestat"), name: "cachestat", snapshots: "cli__" };

fn run(options: &str) -> (Option<i32>, String, String) {
    CACHESTAT.run(options)
}

#[test]
fn help() {
    CACHESTAT.help();
}

#[test]
fn version() {
    CACHESTAT.version();
}

#[test]
fn manual_and_completions() {
    CACHESTAT.manual_and_completions();
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
        "--engine turbo",
        "--engine both --bcc",
        "--engine classic --by file",
        "--engine both --comm dd",
        "--by inode",
        "--by thread --file /etc/passwd",
        "--file /no/such/file",
        "--mount /no/such/dir",
        "--cgroup /no/such/cgroup",
        "--comm=",
        "--file-table 0",
        "--table-size 0",
        "-p 0",
        "-p abc",
        "-p 1,,2",
        "-p 1,abc",
        "-p 1,2 --for 100ms",
        "--what-if 1 --cgroup / --cgroup /a",
        "--engine classic -u root",
        "--cold slab 0.1 2",
        "-r 3 0.1 2",
        "--prepare false 0.1 2",
        "--warmup 2 --wait-all --as-root 0.1 2",
        "--wait-all --as-root 0.1 2",
        "-p 1 --as-root --for 100ms",
        "-r 3 --cold slab --warmup 2 --prepare false -p 1 --for 100ms",
        "-r 3",
        "--save /dev/null 1",
        "--what-if 1 --record a",
        "--what-if 1 --replay a",
        "--so-far 1s 1 1",
        "--so-far 1s --blame 1",
        "--from 10:00 1 1",
        "--every 2s 1 1",
        "--every 2s --by evictor 1 1",
        "--replay /no/such/file",
        "--replay /etc/passwd",
        "--replay /dev/null",
        "--replay a --record b",
        "--replay a 1",
        "--replay a --engine classic",
        "--from 14:00",
        "--replay a --from yesterday",
        "--replay a --every 0",
        "--record /etc/passwd 1",
        "--record a -- true",
        "--csv -- true",
        "ls -l",
        "--html x 1 1",
    ] {
        let err = CACHESTAT.refused(options);
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
    for options in ["--generate man", "--help", "-V"] {
        CACHESTAT.writes_or_says_so(options);
    }
}

#[test]
fn without_privilege_it_says_what_to_do() {
    CACHESTAT.without_privilege_it_says_what_to_do("1 1");
    let (_dir, recording) = outside::unreadable();
    CACHESTAT.without_privilege_it_says_what_to_do(&format!("--replay {recording}"));
}

#[test]
fn a_small_stack_is_made_larger_or_told() {
    for (limit, line) in [("-Ss 64", "--help"), ("-Ss 32", "--generate man"), ("-s 64", "--help")] {
        let script = format!("ulimit {limit}; exec \"$0\" {line}");
        let out = std::process::Command::new("sh").args(["-c", &script, CACHESTAT.path]).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        match out.status.code() {
            Some(0) => assert_eq!((err.as_ref(), out.stdout.is_empty()), ("", false)),
            // The hard limit is root's to raise.
            code => {
                assert_eq!((code, limit), (Some(1), "-s 64"), "{err}");
                let why =
                    "cachestat: error: this process may have a stack of 64 KiB, and needs 256\nremedy: raise";
                assert!(err.starts_with(why), "{err}");
            }
        }
    }
}

#[test]
fn a_time_zone_without_an_end_does_not_hang() {
    let mut command = std::process::Command::new("timeout");
    let line = ["20", CACHESTAT.path, "--replay", "/no/such/file", "--from", "14:00"];
    let out = command.args(line).env("TZ", "/dev/zero").output().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
}
