//! `cachetop` from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used)]

#[path = "outside/mod.rs"]
mod outside;

use outside::Program;

const CACHETOP: Program =
    Program { path: env!("CARGO_BIN_EXE_cachetop"), name: "cachetop", snapshots: "top__" };

#[test]
fn help() {
    CACHETOP.help();
}

#[test]
fn version() {
    CACHETOP.version();
}

#[test]
fn manual_and_completions() {
    CACHETOP.manual_and_completions();
}

#[test]
fn wrong_usage_ends_with_2_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("wrong.toml");
    std::fs::write(&wrong, "by = 'process'\ncolour = 'green'\n").unwrap();
    let mut all = String::new();
    for options in [
        "0",
        "dd",
        "-n 0",
        "--by inode",
        "--sort rubbish",
        "--columns evicted",
        "--json -b",
        "--no-files --by file",
        "--engine classic --by file",
        "--top 3",
        "-b --cgroup /no/such/cgroup",
        "-b --file /no/such/file",
        "-b --mount /no/such/dir",
        "--file /etc/passwd --by thread",
        "--config /no/such/directory/file",
        "--config WRONG",
        "--from 14:00",
        "--replay /no/such/file",
        "--replay WRONG",
        "-b --replay WRONG",
        "--replay WRONG --from yesterday",
        "--replay WRONG --engine exact",
        "1",
    ] {
        let err = CACHETOP.refused(&options.replace("WRONG", wrong.to_str().unwrap()));
        let err = err.replace(wrong.to_str().unwrap(), "WRONG");
        let lines: Vec<_> = err.lines().take_while(|l| !l.is_empty()).collect();
        all += &format!("$ cachetop {options}\n{}\n", lines.join("\n"));
    }
    insta::assert_snapshot!("usage_errors", all);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    for options in ["--generate man", "--help", "-V"] {
        CACHETOP.writes_or_says_so(options);
    }
}

#[test]
fn without_privilege_it_says_what_to_do() {
    CACHETOP.without_privilege_it_says_what_to_do("-b -n 1");
    let (_dir, recording) = outside::unreadable();
    CACHETOP.without_privilege_it_says_what_to_do(&format!("-b --replay {recording}"));
}
