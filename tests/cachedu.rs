//! `cachedu` from outside: what it says and how it ends. Needs no privilege.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "outside/mod.rs"]
mod outside;

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use outside::Program;
use outside::parts as text;

const CACHEDU: Program =
    Program { path: env!("CARGO_BIN_EXE_cachedu"), name: "cachedu", snapshots: "cachedu__" };

fn cachedu(options: &str) -> Command {
    CACHEDU.command(options)
}

fn run(options: &str) -> (Option<i32>, String, String) {
    CACHEDU.run(options)
}

#[test]
fn help() {
    CACHEDU.help();
}

#[test]
fn version() {
    CACHEDU.version();
}

#[test]
fn manual_and_completions() {
    CACHEDU.manual_and_completions();
}

#[test]
fn wrong_usage_ends_with_2_and_says_why() {
    let mut all = String::new();
    for options in [
        "--rubbish",
        "--depth -1",
        "--depth x",
        "--sort rubbish",
        "--top 0",
        "--min 5Q",
        "--min -1",
        "--exclude [",
        "-0",
        "--files-from /no/such/list",
        "--json --csv",
        "--pid 0",
        "--pid 1 .",
        "--pid 2147483647",
        "--comm no-such-process-name",
        "--cgroup /no/such/cgroup",
        "--flush .",
        "-n .",
        "--evict --load .",
        "--restore /no/such/set",
        "--restore /etc/passwd",
        "--diff /etc/passwd",
        "-i",
        "-i --json",
        "-i /etc/passwd",
        "-j 0",
        "--method magic",
    ] {
        let (code, out, err) = run(options);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{options}: {err}");
        all += &format!("$ cachedu {options}\n{}\n", err.lines().next().unwrap_or_default());
    }
    insta::assert_snapshot!("cachedu_usage_errors", all);
}

#[test]
fn what_is_not_there_is_told_and_the_rest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("there");
    fs::write(&path, "x").unwrap();
    let (code, out, err) = run(&format!("{} /no/such/file /dev/null", path.display()));
    assert_eq!(code, Some(1));
    let row = out.lines().nth(1).unwrap();
    assert!(row.contains("100.00%") && row.ends_with("/there"), "{out}");
    assert!(err.contains("/no/such/file: no such file") && err.contains("character device"), "{err}");
    // What is not known is no number.
    for line in out.lines().filter(|l| l.contains("/no/such/file") || l.contains("/dev/null")) {
        assert_eq!(line.split_whitespace().nth(2), Some("-"), "{line}");
    }
}

#[test]
fn an_empty_file_is_neither_cached_nor_not() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (code, out, _) = run(file.path().to_str().unwrap());
    let cells: Vec<_> = out.lines().nth(1).unwrap().split_whitespace().take(4).collect();
    assert_eq!((code, cells), (Some(0), vec!["0", "0", "0", "-"]));
}

#[test]
fn paths_from_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a"), "x").unwrap();
    fs::write(at("b\nc"), "xy").unwrap();
    let list = |null: &str, separator: &str| {
        let mut command = cachedu(&format!("--csv {null} --files-from -"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let names = [at("a"), at("b\nc")].map(|p| p.to_str().unwrap().to_owned()).join(separator);
        child.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
        text(child.wait_with_output().unwrap())
    };
    let (code, out, _) = list("-0", "\0");
    assert_eq!(code, Some(0));
    assert!(out.lines().last().unwrap().starts_with("total,3,"), "{out}");
    assert_eq!(list("", "\n").0, Some(1), "a name with a line break needs -0");
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    for options in ["--generate man", "--json .", "--map Cargo.toml", "src"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, err) = text(cachedu(options).stdout(full).output().unwrap());
        assert_eq!(code, Some(1));
        assert!(err.contains("cannot write the output: No space left on device"), "{err}");

        let (writer, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let output = cachedu(options).stdout(OwnedFd::from(writer)).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{options}");
    }
}

#[test]
fn directories_in_one_another_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("file"), "xyz").unwrap();
    let named = |paths: &[&Path]| {
        let (code, out, _) = text(cachedu("--csv -d 0").args(paths).output().unwrap());
        assert_eq!(code, Some(0));
        out.lines().last().unwrap().split(',').nth(1).unwrap().to_owned()
    };
    assert_eq!(named(&[dir.path()]), "3");
    assert_eq!(named(&[dir.path(), &inner]), "3");
    assert_eq!(named(&[&inner, dir.path()]), "3");
    // Files as well, whether they or the directory come first.
    let (file, link) = (inner.join("file"), dir.path().join("link"));
    assert_eq!(named(&[&file, &file]), "3");
    assert_eq!(named(&[&file, dir.path()]), "3");
    assert_eq!(named(&[dir.path(), &file]), "3");
    fs::hard_link(&file, &link).unwrap();
    assert_eq!(named(&[&file, &link, &inner]), "3");
    let (code, out, _) = text(cachedu("-n --evict").args([&file, &link, &inner]).output().unwrap());
    assert!(code == Some(0) && out.contains("of 1 files"), "{out}");
}

#[test]
fn what_cannot_be_read_is_not_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mode = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    fs::write(at("file"), "x").unwrap();
    for (name, bits) in [("closed", 0), ("listed", 0o444)] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("inside"), "x").unwrap();
        mode(name, bits);
    }
    // To root, nothing is closed.
    let closed = fs::read_dir(at("closed")).is_err();
    let (code, out, _) = run(&format!("--json {}", dir.path().display()));
    for name in ["closed", "listed"] {
        mode(name, 0o755);
    }
    if !closed {
        return;
    }
    assert_eq!(code, Some(1));
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for name in ["/closed", "/listed"] {
        let line = lines.iter().find(|l| l["path"].as_str().is_some_and(|p| p.ends_with(name))).unwrap();
        assert_eq!((&line["cached"], &line["partial"]), (&serde_json::Value::Null, &true.into()), "{line}");
    }
    let total = lines.last().unwrap();
    assert_eq!((&total["cached_ratio"], &total["partial"]), (&serde_json::Value::Null, &true.into()));
    assert_eq!((&total["cached"], &total["unread"]), (&1.into(), &2.into()));
}
