//! `cachetop` from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod outside;

use outside::Program;

const CACHETOP: Program = Program { name: "cachetop", path: env!("CARGO_BIN_EXE_cachetop") };

#[test]
fn help_and_manual() {
    for (name, option) in [("help_short", "-h"), ("help_long", "--help")] {
        insta::assert_snapshot!(name, CACHETOP.help(option));
    }
    insta::assert_snapshot!("man", CACHETOP.manual());
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
        "--config /no/such/directory/file",
        "--config WRONG",
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
    CACHETOP.needs_privilege("-b -n 1");
}
