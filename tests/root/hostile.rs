//! Names that write on the terminal of whoever looks at them: of a process, its arguments, its file, its directory, its
//! cgroup, and in a report that was saved. No output may have anything in it that acts, or a line that a name has forged.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use crate::pty::Screen;
use crate::tools::*;

/// What a terminal obeys, a spreadsheet computes, and a reader is deceived by. No UTF-8 at its end.
const NAME: &[u8] = b"=\x1b]0;x\x07\xc2\x9b\xe2\x80\xae\nf\xff";
/// The same for a file, with a line that nobody of ours has written. UTF-8.
const FILE: &str =
    "@\u{1b}[31m\u{9b}2J\u{202e}\u{2028}\u{200b}\r\nfindings\n  * forged [forged]\u{7f}\t\\x1b";
/// How it is to be shown.
const SHOWN: &str = r"@\x1b[31m\u{9b}2J\u{202e}\u{2028}\u{200b}\r\nfindings\n  * forged [forged]\x7f\t\\x1b";
/// How `NAME` is.
const SHOWN_NAME: &str = r"=\x1b]0;x\x07\u{9b}\u{202e}\nf\xff";

/// A program of that name, with such arguments, that reads such a file, in such a cgroup, until it is dropped.
struct Hostile {
    process: Child,
    dir: PathBuf,
    file: PathBuf,
    program: PathBuf,
    group: Option<PathBuf>,
}

impl Hostile {
    fn new(dir: &Path) -> Self {
        let dir = dir.join(OsStr::from_bytes(b"d\x1b[1m\ndir\xe2\x81\xa6"));
        fs::create_dir_all(&dir).unwrap();
        let program = dir.join(OsStr::from_bytes(NAME));
        fs::copy("/bin/sh", &program).unwrap();
        let file = dir.join(FILE);
        fs::write(&file, vec![b'x'; 3 * 4096]).unwrap();
        // The shell itself reads: whatever it started would have a name of its own.
        // It has the file open all the time.
        let line = "exec 7<\"$1\"; while :; do while read -r x; do :; done <\"$1\"; sleep 0.02; done";
        let process =
            Command::new(&program).args(["-c", line, "\x1b[7m\n\u{9b}"]).arg(&file).spawn().unwrap();
        let held = format!("/proc/{}/fd/7", process.id());
        wait_for("the process to open its file", || fs::read_link(&held).is_ok_and(|f| f == file));
        let group =
            ["/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"].iter().find_map(|root| {
                let group = Path::new(root).join("\u{1b}[32m\u{9b}\u{2067}group");
                fs::metadata(Path::new(root).join("cgroup.procs")).ok()?;
                let _ = fs::create_dir(&group);
                fs::write(group.join("cgroup.procs"), process.id().to_string()).ok()?;
                Some(group)
            });
        Self { process, dir, file, program, group }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(group) = &self.group {
            wait_for("the cgroup to be empty", || fs::remove_dir(group).is_ok());
        }
    }
}

/// Whether a character would do something, or not be seen. Told apart from the program's own list: by what Unicode says.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c as u32, 0xad | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f)
}

/// Text in which nothing acts but the ends of its lines, none of which a name has forged.
fn quiet(what: &str, bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: no UTF-8: {e}"));
    for line in text.lines() {
        assert!(!line.contains(acts), "{what}: {line:?}");
        for forged in ["f\\xff", "  * forged", "dir\\u", "\u{fffd}"] {
            assert!(!line.starts_with(forged), "{what}: {line:?}");
        }
    }
    assert!(text.lines().filter(|l| *l == "findings").count() <= 1, "{what}: {text}");
    text
}

/// Both outputs of a command, looked through.
fn say(command: &mut Command) -> (Option<i32>, String, String) {
    plain(command);
    let what = format!("{command:?}");
    let out = command.output().unwrap();
    (out.status.code(), quiet(&what, out.stdout), quiet(&what, out.stderr))
}

fn with(program: &str, options: &str) -> Command {
    let mut command = Command::new(program);
    command.args(options.split_whitespace()).stdin(Stdio::null());
    command
}

fn top() -> &'static str {
    env!("CARGO_BIN_EXE_cachetop")
}

fn du() -> &'static str {
    env!("CARGO_BIN_EXE_cachedu")
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// A CSV of one line for each record, none of whose cells is a formula.
fn no_formula(text: &str) {
    for line in text.lines() {
        assert_eq!(line.matches('"').count() % 2, 0, "a record of several lines: {line:?}");
        let cells = line.split(',').map(|c| c.trim_start_matches('"'));
        for cell in cells {
            let formula =
                cell.starts_with(['=', '+', '@']) || cell.starts_with('-') && cell.parse::<f64>().is_err();
            assert!(!formula, "{line:?}");
        }
    }
}

pub fn hostile_names_in_intervals(dir: &Path) {
    let hostile = Hostile::new(dir);
    let mut seen = Vec::new();
    for by in ["process", "thread", "comm", "user", "cgroup", "file", "mount", "device"] {
        let (code, text, err) = say(&mut with(&program(), &format!("--by {by} --top 1000 0.3 1")));
        assert_eq!(code, Some(0), "{err}");
        let (_, csv, _) = say(&mut with(&program(), &format!("--csv --by {by} --top 1000 0.3 1")));
        no_formula(&csv);
        let (_, json, _) = say(&mut with(&program(), &format!("--json --by {by} --top 1000 0.3 1")));
        let [interval] = &objects(&json)[..] else { panic!("{json}") };
        let rows = interval["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{by}");
        let name = String::from_utf8_lossy(NAME).into_owned();
        match by {
            "process" | "thread" | "comm" => {
                // The middle may be left out.
                assert!(text.contains(r"\nf\xff"), "{by}: {text}");
                assert!(csv.contains(&format!("'{SHOWN_NAME}")), "{by}: {csv}");
                assert!(rows.iter().any(|r| r["comm"] == name.as_str()), "{by}: {json}");
            }
            "file" => {
                assert!(csv.contains(SHOWN), "{csv}");
                let path = hostile.file.to_str().unwrap();
                assert!(rows.iter().any(|r| r["path"] == path), "{json}");
            }
            "cgroup" if hostile.group.is_some() => {
                assert!(text.contains(r"\x1b[32m\u{9b}\u{2067}group"), "{text}");
                let group = rows.iter().filter_map(|r| r["cgroup"].as_str());
                assert!(group.into_iter().any(|g| g.ends_with("\u{1b}[32m\u{9b}\u{2067}group")), "{json}");
            }
            _ => {}
        }
        seen.push(by);
    }
    assert_eq!(seen.len(), 8);
    let (code, text, _) = say(&mut with(&program(), "--bcc 0.2 1"));
    assert_eq!((code, text.lines().count()), (Some(0), 2), "{text}");
    for option in ["--comm", "--cgroup", "--file"] {
        let mut command = with(&program(), "0.2 1");
        let value: &OsStr = match option {
            "--comm" => OsStr::from_bytes(NAME),
            "--cgroup" => OsStr::new("/\u{1b}none\n"),
            _ => hostile.file.as_os_str(),
        };
        say(command.arg(option).arg(value));
    }
}

pub fn hostile_names_in_reports(dir: &Path) {
    let hostile = Hostile::new(dir);
    let saved = hostile.dir.join("saved\u{1b}[2J\n.json");
    let html = hostile.dir.join("page.html");
    let command = |options: &[&OsStr]| {
        let mut command = Command::new(program());
        command.args(options).arg("--").arg(&hostile.program).args([
            "-c",
            "read x <\"$1\"; true",
            "\x1b[7m\nfindings\n",
        ]);
        command.arg(&hostile.file);
        say(&mut command)
    };
    let o = OsStr::new;
    let (code, out, text) =
        command(&[o("-v"), o("--save"), saved.as_os_str(), o("--html"), html.as_os_str()]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains(r"\x1b]0;x\x07") && text.contains("forged"), "{text}");
    let page = quiet("html", fs::read(&html).unwrap());
    assert!(page.contains(r"* forged [forged]\x7f\t\\x1b") && page.contains(r"\x1b]0;x\x07"), "{page}");
    let mut report: Value = serde_json::from_str(&quiet("saved", fs::read(&saved).unwrap())).unwrap();
    let path = hostile.file.to_str().unwrap();
    assert!(report["files"].as_array().unwrap().iter().any(|f| f["path"] == path), "{report}");
    assert_eq!(report["command"][3], "\x1b[7m\nfindings\n");
    let (_, _, json) = command(&[o("--json")]);
    assert_eq!(objects(&json)[0]["command"][3], "\x1b[7m\nfindings\n");

    // What a file says that somebody else may have written.
    let evil = "e\u{1b}]0;x\u{7}\u{202e}\u{9b}\nfindings\n  * forged [forged]";
    report["host"] = evil.into();
    report["command"] = vec![evil].into();
    for run in report["runs"].as_array_mut().unwrap() {
        run["time"] = evil.into();
        run["cold"] = evil.into();
        for file in run["files"].as_array_mut().unwrap() {
            (file["path"], file["fs"]) = (evil.into(), evil.into());
        }
    }
    fs::write(&saved, report.to_string()).unwrap();
    let compare = [o("-v"), o("--compare"), saved.as_os_str(), o("--html"), html.as_os_str()];
    let (code, _, text) = command(&compare);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("compared with"), "{text}");
    quiet("html of a comparison", fs::read(&html).unwrap());
    let (code, _, json) = command(&[o("--json"), o("--compare"), saved.as_os_str()]);
    assert_eq!((code, objects(&json).len()), (Some(0), 1));
    report["schema"] = evil.into();
    fs::write(&saved, report.to_string()).unwrap();
    let (code, _, err) = command(&[o("--compare"), saved.as_os_str()]);
    assert_eq!((code, err.lines().count()), (Some(2), 2), "{err}");
    // What is not there.
    let (code, _, err) = say(Command::new(program()).arg("--").arg(hostile.dir.join("no\u{1b}\nsuch")));
    assert_eq!((code, err.lines().count()), (Some(127), 1), "{err}");
}

pub fn hostile_names_in_cachetop(dir: &Path) {
    let hostile = Hostile::new(dir);
    for by in ["process", "file", "cgroup"] {
        let (code, text, err) = say(&mut with(top(), &format!("--no-config -b -n 1 --by {by} 0.3")));
        assert_eq!(code, Some(0), "{err}");
        assert!(text.lines().count() > 3, "{text}");
        let (_, json, _) = say(&mut with(top(), &format!("--no-config --json -n 1 --by {by} 0.3")));
        assert_eq!(objects(&json).len(), 1);
    }
    let mut screen = Screen::new(Path::new(top()), &["--no-config", "--by", "process", "0.3"]);
    screen.until("the name", |t| t.contains(r"=\x1b]0").then_some(()));
    screen.press("/0;x\r");
    screen.until("one row", |t| t.contains("1 of ").then_some(()));
    screen.press("\r");
    screen.until("its command line", |t| {
        (t.contains("command line") && t.contains(r"\x1b[1m\ndir")).then_some(())
    });
    assert!(!screen.text().contains(|c| c != '\n' && acts(c)), "{:?}", screen.text());
    assert_eq!(screen.parser.lock().unwrap().screen().title(), "");
    screen.press("\u{1b}");
    screen.press("q");
    screen.ends("q among hostile names");
    drop(hostile);
}

pub fn hostile_names_in_cachedu(dir: &Path) {
    let hostile = Hostile::new(dir);
    let odd = hostile.dir.join(OsStr::from_bytes(b"@odd\xff\n"));
    fs::write(&odd, vec![b'x'; 5 * 4096]).unwrap();
    let in_dir = |options: &[&str]| {
        let mut command = with(du(), "");
        command.args(options).current_dir(&hostile.dir);
        command
    };
    let files =
        |options: &[&str]| say(in_dir(options).arg("--").arg(FILE).arg("=odd").arg(odd.file_name().unwrap()));
    fs::copy(&odd, hostile.dir.join("=odd")).unwrap();
    let (code, text, err) = files(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(text.contains(SHOWN) && text.contains(r"@odd\xff\n"), "{text}");
    let (_, csv, _) = files(&["--csv"]);
    no_formula(&csv);
    assert!(csv.contains("'=odd") && csv.contains(&format!("'{SHOWN}")), "{csv}");
    let (_, json, _) = files(&["--json"]);
    let rows = objects(&json);
    assert!(rows.iter().any(|r| r["path"] == FILE), "{json}");
    let hex: String = b"@odd\xff\n".iter().map(|b| format!("{b:02x}")).collect();
    assert!(rows.iter().any(|r| r["path_hex"] == hex.as_str()), "{json}");
    let (_, map, _) = files(&["--map"]);
    assert!(map.contains(SHOWN), "{map}");
    for options in [&["--map", "--json"][..], &["--evict", "--dry-run"], &["--load"], &["--load", "--json"]] {
        let (code, _, err) = files(options);
        assert_eq!(code, Some(0), "{options:?} {err}");
    }
    // The tree, a process, a set that was saved.
    let (code, text, _) = say(&mut in_dir(&[".."]));
    assert_eq!(code, Some(0), "{text}");
    let pid = hostile.process.id().to_string();
    let (_, text, _) = say(&mut in_dir(&["--pid", &pid]));
    assert!(text.contains("forged"), "{text}");
    let set = "s\u{1b}[2J\u{9b}\n";
    assert_eq!(say(&mut in_dir(&["--save", set, "."])).0, Some(0));
    assert_eq!(say(&mut in_dir(&["--restore", set])).0, Some(0));
    let mut text = Vec::new();
    let saved = fs::File::open(hostile.dir.join(set)).unwrap();
    io::Read::read_to_end(&mut flate2::read::GzDecoder::new(saved), &mut text).unwrap();
    assert!(!text.is_empty());
    quiet("the set", text);
    // The browser.
    let mut screen = Screen::new(Path::new(du()), &["-i", hostile.dir.to_str().unwrap()]);
    // As far as there is room for them.
    screen.until("the names", |t| t.contains(r"@\x1b[31m\u{9b}2J\u{202e}").then_some(()));
    assert_eq!(screen.parser.lock().unwrap().screen().title(), "");
    screen.press("q");
    screen.ends("q of cachedu among hostile names");
}

pub fn hostile_words_on_the_command_line(dir: &Path) {
    let evil = "\u{1b}]0;x\u{7}\n\u{9b}remedy: forged\u{202e}";
    let bytes = OsString::from(evil);
    for name in [program(), top().to_owned(), du().to_owned()] {
        for words in [
            vec!["--no-such", evil],
            vec![evil],
            vec!["--by", evil],
            vec!["--columns", evil],
            vec!["-p", evil],
            vec!["--comm", evil, "--cgroup", evil, "--no-such"],
            vec!["--config", evil],
            vec!["--restore", evil],
            vec!["--diff", evil, evil],
            vec!["--compare", evil, "--", "true"],
        ] {
            let (code, out, err) = say(Command::new(&name).args(&words).current_dir(dir));
            assert!(code.is_some_and(|c| c > 0), "{name} {words:?}: {code:?} {out} {err}");
            assert!(
                !(out + &err).lines().any(|l| l.contains("remedy: forged") && !l.contains(r"\x1b]0")),
                "{err}"
            );
        }
        let option = [OsStr::new("--").as_bytes(), bytes.as_bytes(), b"\xff=1"].concat();
        let (code, _, err) = say(Command::new(&name).arg(OsStr::from_bytes(&option)));
        assert_eq!(code, Some(2), "{err}");
    }
    // An environment, a configuration.
    let config = dir.join("config.toml");
    fs::write(&config, format!("by = {}\n", serde_json::json!("\u{1b}[1m\nx\u{9b}"))).unwrap();
    let (code, _, err) = say(Command::new(top()).arg("--config").arg(&config).args(["-b", "-n", "1"]));
    assert_eq!((code, err.lines().count()), (Some(2), 2), "{err}");
}
