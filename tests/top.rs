//! `cachetop` from outside: what it says and how it ends before it touches the kernel. Needs no privilege.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::process::Stdio;

fn cachetop(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachetop"));
    command.args(options.split_whitespace()).stdin(Stdio::null());
    for name in ["COLUMNS", "RUST_LOG", "XDG_CONFIG_HOME", "HOME"] {
        command.env_remove(name);
    }
    command
}

fn run(options: &str) -> (Option<i32>, String, String) {
    let output = cachetop(options).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn help_and_manual() {
    for (name, option) in [("help_short", "-h"), ("help_long", "--help")] {
        let (code, out, err) = run(option);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{option} fits 80 columns");
        insta::assert_snapshot!(name, out);
    }
    let (code, man, _) = run("--generate man");
    assert_eq!(code, Some(0));
    insta::assert_snapshot!("man", man.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    for (shell, part) in
        [("bash", "complete -F _cachetop"), ("zsh", "#compdef cachetop"), ("fish", "complete -c cachetop")]
    {
        let (code, out, _) = run(&format!("--generate {shell}"));
        assert_eq!(code, Some(0));
        assert!(out.contains(part), "{shell}: {out}");
    }
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
        let (code, out, err) = run(&options.replace("WRONG", wrong.to_str().unwrap()));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{options}: {err}");
        let err = err.replace(wrong.to_str().unwrap(), "WRONG");
        let lines: Vec<_> = err.lines().take_while(|l| !l.is_empty()).collect();
        all += &format!("$ cachetop {options}\n{}\n", lines.join("\n"));
    }
    insta::assert_snapshot!("usage_errors", all);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let (writer, reader) = UnixStream::pair().unwrap();
    drop(reader);
    let output = cachetop("--generate man").stdout(OwnedFd::from(writer)).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn without_privilege_it_says_what_to_do() {
    let mut command = cachetop("-b -n 1");
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
    assert!(err.starts_with("cachetop: error: ") && err.contains("\nremedy: "), "{err}");
}
