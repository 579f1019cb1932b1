//! `cachedu` from outside: what it says and how it ends. Needs no privilege.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "cachedu/few.rs"]
mod few;
#[path = "cachedu/others.rs"]
mod others;
#[path = "outside/mod.rs"]
mod outside;
#[path = "cachedu/published.rs"]
mod published;
#[path = "cachedu/signals.rs"]
mod signals;
#[path = "truth/sys.rs"]
#[allow(dead_code)]
mod sys;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use outside::Program;

const CACHEDU: Program =
    Program { path: env!("CARGO_BIN_EXE_cachedu"), name: "cachedu", snapshots: "cachedu__" };

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
        "--min 1iB",
        "--min -1",
        "--exclude [",
        "--exclude /",
        "--exclude a/../b",
        "--files-from /etc",
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
        "--flush --load .",
        "-0 --pid 1",
        "--restore /no/such/set --min 1M",
        "--diff a b --top 3",
        "-i --depth 2",
        "--pid 1 -x",
        "--evict",
        "--evict -n",
        "--save /no/such/directory/set .",
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
        let err = CACHEDU.refused(options);
        all += &format!("$ cachedu {options}\n{}\n", err.lines().next().unwrap_or_default());
    }
    insta::assert_snapshot!("cachedu_usage_errors", all);
}

#[test]
fn what_is_not_there_is_told_and_the_rest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("there");
    fs::write(&path, "x").unwrap();
    let (code, out, err) = CACHEDU.run(&format!("{} /no/such/file /dev/null", path.display()));
    assert_eq!(code, Some(1));
    let row = out.lines().nth(1).unwrap();
    assert!(row.contains("100.00%") && row.ends_with("/there"), "{out}");
    assert!(err.contains("/no/such/file: no such file") && err.contains("character device"), "{err}");
    // Once: what is not there has no row.
    assert_eq!(
        (out.matches("/no/such/file").count(), err.matches("/no/such/file").count()),
        (0, 1),
        "{out}{err}"
    );
    let (code, out, err) = CACHEDU.run("/no/such/file");
    assert_eq!((code, err.lines().count()), (Some(1), 1), "{out}{err}");
    assert_eq!(out, "");
    // What is not known is no number, nor is the size of what is not there.
    for line in out.lines().filter(|l| l.contains("/no/such/file") || l.contains("/dev/null")) {
        assert_eq!(line.split_whitespace().take(3).collect::<Vec<_>>(), ["-"; 3], "{line}");
    }
}

#[test]
fn an_empty_file_is_neither_cached_nor_not() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (code, out, _) = CACHEDU.run(file.path().to_str().unwrap());
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
        let mut command = CACHEDU.command(&format!("--csv {null} --files-from -"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let names = [at("a"), at("b\nc")].map(|p| p.to_str().unwrap().to_owned()).join(separator);
        child.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
        outside::parts(child.wait_with_output().unwrap())
    };
    let (code, out, _) = list("-0", "\0");
    assert_eq!(code, Some(0));
    assert!(out.lines().last().unwrap().starts_with("total,3,"), "{out}");
    assert_eq!(list("", "\n").0, Some(1), "a name with a line break needs -0");
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    for options in ["--generate man", "--help", "-V", "--json .", "--map Cargo.toml", "src", "Cargo.toml"] {
        CACHEDU.writes_or_says_so(options);
    }
}

#[test]
fn directories_in_one_another_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("file"), "xyz").unwrap();
    let named = |paths: &[&Path]| {
        let (code, out, _) = outside::parts(CACHEDU.command("--csv -d 0").args(paths).output().unwrap());
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
    let (code, out, _) =
        outside::parts(CACHEDU.command("-n --evict").args([&file, &link, &inner]).output().unwrap());
    assert!(code == Some(0) && out.contains("of 1 files"), "{out}");
}

#[test]
fn what_cannot_be_read_is_not_nothing() {
    let dir = others::open_dir();
    let at = |name: &str| dir.path().join(name);
    let mode = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    fs::write(at("file"), "x").unwrap();
    others::give(&at("file"));
    for (name, bits) in [("closed", 0), ("listed", 0o444)] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("inside"), "x").unwrap();
        mode(name, bits);
    }
    // To root, nothing is closed.
    let (code, out, _) = others::as_nobody(&["--json".as_ref(), dir.path().as_ref()]);
    let (_, csv, _) = others::as_nobody(&["--csv".as_ref(), dir.path().as_ref()]);
    for name in ["closed", "listed"] {
        mode(name, 0o755);
    }
    assert_eq!(code, Some(1));
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for name in ["/closed", "/listed"] {
        let line = lines.iter().find(|l| l["path"].as_str().is_some_and(|p| p.ends_with(name))).unwrap();
        assert_eq!((&line["cached"], &line["partial"]), (&Value::Null, &true.into()), "{line}");
    }
    let total = lines.last().unwrap();
    assert_eq!((&total["cached_ratio"], &total["partial"]), (&Value::Null, &true.into()));
    assert_eq!((&total["cached"], &total["unread"]), (&1.into(), &2.into()));
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let head = rows.headers().unwrap().clone();
    let total = rows.records().last().unwrap().unwrap();
    let cell = |name: &str| &total[head.iter().position(|h| h == name).unwrap()];
    assert_eq!((cell("cached"), cell("partial"), cell("unread")), ("1", "true", "2"));
}

#[test]
fn what_has_no_page_cache_is_neither_empty_nor_cached() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink("loop", at("loop")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let reasons = |paths: &[&Path]| {
        let (code, out, err) = outside::parts(CACHEDU.command("--json").args(paths).output().unwrap());
        assert_eq!(code, Some(1), "{out}{err}");
        let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let (total, lines) = lines.split_last().unwrap();
        assert_eq!((&total["cached"], &total["cached_ratio"]), (&Value::Null, &Value::Null));
        lines.iter().map(|l| l["reason"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // A pipe is not opened: whoever writes to it would notice.
    let paths = [
        at("socket"),
        at("fifo"),
        at("loop"),
        "/dev/null".into(),
        "/proc/self/status".into(),
        "/sys/kernel/notes".into(),
    ];
    let paths: Vec<_> = paths.iter().map(|p| &**p).collect();
    assert_eq!(
        reasons(&paths),
        ["not_a_file", "not_a_file", "symlink_loop", "not_a_file", "no_page_cache", "no_page_cache"]
    );
    // In a tree, they are no files.
    let (code, out, _) = CACHEDU.run(&format!("--json -d 0 {} /sys/kernel/mm", dir.path().display()));
    let total: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &total["files"], &total["unknown_files"]), (Some(0), &0.into(), &0.into()), "{total}");
    assert!(total["others"].as_u64().unwrap() > 3, "{total}");
}

#[test]
fn a_place_is_left_out_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a/file", "b/a/file", "b/file"] {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let top = dir.path().to_str().unwrap();
    let files = |pattern: &str, operand: &str| {
        let mut command = CACHEDU.command("--csv -f --sort name");
        let output = command.current_dir(dir.path()).args(["--exclude", pattern, operand]).output().unwrap();
        let (code, out, err) = outside::parts(output);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let names = out.lines().skip(1).filter(|l| l.starts_with("file,"));
        let tail = |l: &str| {
            l.rsplit(',').next().unwrap().trim_start_matches(top).trim_matches(['.', '/']).to_owned()
        };
        names.map(tail).collect::<Vec<_>>()
    };
    let above = format!("../{}", dir.path().file_name().unwrap().display());
    for operand in [".", top, &above, "b/.."] {
        for pattern in ["./a", &format!("{top}/a"), ".//a/"] {
            let found = files(pattern, operand);
            assert!(found.iter().all(|f| f.ends_with("b/a/file") || f.ends_with("b/file")), "{found:?}");
            assert_eq!(found.len(), 2, "{pattern} {operand}: {found:?}");
        }
        assert_eq!(files("a", operand).len(), 1, "a name is left out everywhere");
        assert_eq!(files("b/a", operand).len(), 2, "{operand}");
    }
}

#[test]
fn processes_stand_where_they_were_asked_for() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"x").unwrap();
    let column = |options: &str| {
        let (_, out, _) = CACHEDU.run(options);
        let mut lines = csv::ReaderBuilder::new().from_reader(out.as_bytes());
        let at = lines.headers().unwrap().iter().position(|h| h == "processes").unwrap();
        let rows: Vec<_> = lines.records().map(Result::unwrap).collect();
        let name = file.path().to_str().unwrap();
        let row = rows.iter().find(|r| r.iter().next_back() == Some(name)).unwrap();
        (row[at].to_owned(), rows.last().unwrap()[at].to_owned())
    };
    let pid = std::process::id();
    assert_eq!(column(&format!("--csv --pid {pid}")), ("1".into(), String::new()));
    assert_eq!(column(&format!("--csv {}", file.path().display())), (String::new(), String::new()));
}

#[test]
fn a_set_outlives_a_save_of_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (file, set) = (dir.path().join("file"), dir.path().join("set"));
    fs::write(&file, "x").unwrap();
    let save = |path: &str| CACHEDU.run(&format!("--save {} {path}", set.display()));
    assert_eq!(save(file.to_str().unwrap()).0, Some(0));
    let saved = fs::read(&set).unwrap();
    let (code, _, err) = save("/no/such/file");
    assert!(code == Some(1) && err.contains("nothing is saved"), "{err}");
    assert_eq!(fs::read(&set).unwrap(), saved);
    // What is there and has nothing cached replaces it no more than what is missing.
    let empty = dir.path().join("empty");
    fs::write(&empty, "").unwrap();
    let (code, _, err) = save(empty.to_str().unwrap());
    assert!(code == Some(1) && err.contains("nothing of this is cached"), "{err}");
    assert_eq!(fs::read(&set).unwrap(), saved);
    let (code, out, _) = CACHEDU.run(&format!("--load {}", file.display()));
    assert_eq!(code, Some(0));
    assert!(out.starts_with("read: 0; ") && !out.starts_with("read: 0; 0 "), "all of it is cached: {out}");
}

#[test]
fn a_set_is_not_restored_to_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let (file, set) = (dir.path().join("file"), dir.path().join("set"));
    let restore = |more: &str| CACHEDU.run(&format!("--restore {}{more}", set.display()));
    fs::write(&file, "as it was").unwrap();
    assert_eq!(CACHEDU.run(&format!("--save {} {}", set.display(), file.display())).0, Some(0));
    let (code, out, err) = restore("");
    assert!(code == Some(0) && out.contains("were there"), "{out}{err}");
    // Written to since: it is the same file.
    fs::write(&file, "as it is now, and longer").unwrap();
    assert_eq!(restore("").0, Some(0));
    let new = dir.path().join("new");
    fs::write(&new, "quite another one").unwrap();
    fs::rename(&new, &file).unwrap();
    let (code, _, err) = restore("");
    assert!(code == Some(1) && err.contains("another file than the one that was saved"), "{err}");
    // What others may have written into a set.
    let write = |path: &str| {
        let head = r#"{"type":"cachedu-set","version":3,"page_size":PAGE}"#;
        let head = head.replace("PAGE", &rustix::param::page_size().to_string());
        let row = format!(r#"{{"path":"{path}","size_bytes":1,"inode":1,"mtime_ns":1,"runs":[0,1]}}"#);
        fs::write(&set, format!("{head}\n{row}\n{{\"type\":\"end\",\"files\":1}}\n")).unwrap();
    };
    write("Cargo.toml");
    let (code, _, err) = restore("");
    assert!(code == Some(1) && err.contains("not a whole path") && err.contains("--trust"), "{err}");
    let (_, _, err) = restore(" --trust");
    assert!(err.contains("another file"), "where it is looked for all the same: {err}");
    write("/dev/zero");
    assert_eq!(restore(" --trust").0, Some(1), "no device without an end is read");
    // A compressed set that was damaged is told by its checksum, wherever that is.
    fs::remove_file(&set).unwrap();
    assert_eq!(CACHEDU.run(&format!("--save {} {}", set.display(), file.display())).0, Some(0));
    let whole = fs::read(&set).unwrap();
    // The last byte before checksum and length may end in bits that mean nothing.
    for at in (10..whole.len()).filter(|at| at % 3 == 0 && at + 9 != whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        fs::write(&set, &bytes).unwrap();
        let (code, _, err) = restore(" -n");
        assert!(code == Some(2), "{at}: {err}");
        fs::write(&set, &whole[..at]).unwrap();
        assert_eq!(restore(" -n").0, Some(2), "cut off at {at}");
    }
}
