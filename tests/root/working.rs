//! `--working-set` against what was done: processes that read so many distinct pages, over and over, until it has ended.
//!
//! `WORKING_SET=long` watches for 75 seconds, after which the last minute is known, without what was read only before.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use crate::tools::*;

/// The command name of readers.
const NAME: &str = "ws-reader";
const MANY: u64 = 100_000;

/// `pages FIRST COUNT PATH`: each of them is read, and half of it twice. `files COUNT DIR`: some pages of each.
pub fn act(word: &str, rest: &str) {
    let number = |s: &str| s.parse::<u64>().unwrap();
    match (word, rest.split_once(' ')) {
        ("pages", Some((first, rest))) => {
            let (count, path) = rest.split_once(' ').unwrap();
            pages(Path::new(path), number(first), number(count));
        }
        ("files", Some((count, dir))) => {
            (0..number(count)).for_each(|n| pages(&Path::new(dir).join(n.to_string()), 0, 10));
        }
        _ => crate::tools::act(word, rest),
    }
}

fn pages(path: &Path, first: u64, count: u64) {
    let file = File::open(path).unwrap();
    let mut byte = [0];
    for page in (first..first + count).chain(first..first + count / 2) {
        assert_eq!(file.read_at(&mut byte, page * page_size() + 7).unwrap(), 1);
    }
}

/// A file without data on the disk: its pages are made when they are read.
fn hollow(path: &Path, pages: u64) -> PathBuf {
    File::create(path).unwrap().set_len(pages * page_size()).unwrap();
    path.into()
}

/// A process that reads what it is told.
pub fn reader(dir: &Path) -> Reader {
    let program = dir.join(NAME);
    if !program.exists() {
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    }
    Reader::start(&program)
}

/// Processes of the same name, and what each of them reads over and over.
struct Readers(Vec<(Reader, String, PathBuf)>);

impl Readers {
    fn new(dir: &Path, what: &[(&str, &Path)]) -> Self {
        let start = |(what, path): &(&str, &Path)| {
            let mut reader = reader(dir);
            reader.tell(what, path);
            (reader, (*what).into(), path.to_path_buf())
        };
        Self(what.iter().map(start).collect())
    }

    /// What the command says of them, who read until it has ended.
    fn asked(&mut self, options: &str) -> Value {
        let long = std::env::var("WORKING_SET").is_ok_and(|v| v == "long");
        let seconds = if long { 75 } else { 6 };
        let asked = Monitor::launch(&format!("--json --working-set {seconds} --comm {NAME} {options}"));
        let line = loop {
            for (reader, what, path) in &mut self.0 {
                reader.tell(what, path);
            }
            match asked.incoming.try_recv() {
                Ok(line) => break line,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => panic!("it said nothing"),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let all: Value = serde_json::from_str(&line).unwrap();
        let all = all["working_set"].clone();
        assert_eq!(all["of"], format!("command {NAME}"));
        assert_eq!(all["seconds"], f64::from(seconds));
        // What was not watched is not known, and says why.
        for (i, window) in ["1m", "5m", "15m", "60m"].iter().enumerate() {
            let known = long && i == 0;
            assert_eq!(all["all"]["pages"][window].is_null(), !known, "{all}");
            let why = if known { Value::Null } else { "not watched for so long".into() };
            assert_eq!(all["windows"][i]["reason"], why);
        }
        if long {
            assert_eq!(all["windows"][0]["seconds"], 60.0);
            assert_eq!(all["all"]["pages"]["1m"], all["all"]["pages"]["watched"]);
        }
        all
    }
}

/// A row has so many pages, within the error that it states, and one of 20 that is off by more is off by less than half as
/// much again. What a process reads beside them, its program, is a page or two.
fn about(row: &Value, pages: u64) {
    let said = figure(row, "/pages/watched") as f64;
    let error = row["error"].as_f64().expect("an error");
    let allowed = pages as f64 * error * 1.5 + 2.0;
    println!(
        "  {said} for {pages}: {:+.1}%, stated ±{:.1}%",
        (said / pages as f64 - 1.0) * 100.0,
        error * 100.0
    );
    assert!((said - pages as f64).abs() <= allowed, "{said} for {pages} ± {error}: {row}");
    assert_eq!(row["bytes"]["watched"].as_u64(), Some(said as u64 * page_size()));
}

fn row<'a>(all: &'a Value, key: &str, value: &Value) -> &'a Value {
    let rows = all["rows"].as_array().expect("rows");
    rows.iter().find(|r| r[key] == *value).unwrap_or_else(|| panic!("no row {value}: {all}"))
}

/// The row of a file. Its path has the end that it has here: the same file system may be mounted twice.
fn file<'a>(all: &'a Value, path: &Path) -> &'a Value {
    let row = row(all, "inode", &fs::metadata(path).unwrap().ino().into());
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(row["path"].as_str().is_some_and(|p| p.ends_with(name)), "{row}");
    row
}

/// Two processes of one name that share half of their pages, and one with many: by process, by file, by cgroup.
pub fn working_set(dir: &Path) {
    let (shared, large) = (hollow(&dir.join("shared"), 2000), hollow(&dir.join("large"), MANY));
    let what: [(&str, &Path); 3] =
        [("pages 0 1000", &shared), ("pages 500 1000", &shared), (&format!("pages 0 {MANY}"), &large)];
    let mut readers = Readers::new(dir, &what);
    let all = readers.asked("--by process");
    about(&all["all"], 1500 + MANY);
    for ((reader, ..), pages) in readers.0.iter().zip([1000, 1000, MANY]) {
        let row = row(&all, "pid", &reader.pid().into());
        assert_eq!(row["process"], NAME);
        about(row, pages);
    }
    assert_eq!((&all["other"], &all["rest"]), (&Value::Null, &Value::Null), "{all}");

    // Of a file it is the union of what both have read, and so it is of rows that are put together.
    let all = readers.asked("--by file");
    about(file(&all, &shared), 1500);
    about(file(&all, &large), MANY);
    let all = readers.asked("--by file --top 1");
    about(file(&all, &large), MANY);
    about(&all["rest"], 1500);

    let groups = ["a", "b"].map(|n| {
        let group = crate::whatif::hierarchy().join(format!("working-set-{n}-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        group
    });
    for ((reader, ..), group) in readers.0.iter().zip([0, 0, 1]) {
        fs::write(groups[group].join("cgroup.procs"), reader.pid().to_string()).unwrap();
    }
    let all = readers.asked("--by cgroup");
    for (group, pages) in groups.iter().zip([1500, MANY]) {
        let name = format!("/{}", group.file_name().unwrap().to_str().unwrap());
        about(row(&all, "cgroup", &name.into()), pages);
    }
    readers.0.into_iter().for_each(|(reader, ..)| reader.end());
    for group in groups {
        wait_for("an empty cgroup", || fs::remove_dir(&group).is_ok());
    }
}

/// Tables in a row: each has all that was used since the beginning. Ctrl-C tells what is known by then.
pub fn working_set_in_intervals(dir: &Path) {
    const EACH: u64 = 1000;
    let file = hollow(&dir.join("grows"), 10 * EACH);
    let mut readers = Readers::new(dir, &[(&format!("pages 0 {EACH}"), &file)]);
    let (reader, ..) = &mut readers.0[0];
    let table = |line: &str| serde_json::from_str::<Value>(line).unwrap()["working_set"].clone();
    for interrupted in [false, true] {
        let count = if interrupted { 1000 } else { 5 };
        let mut asked =
            Monitor::launch(&format!("--json --working-set 2 {count} --comm {NAME} --by process"));
        let mut tables: Vec<Value> = Vec::new();
        let mut sent = false;
        while asked.runs() {
            // Other pages than before as soon as there is a table, so that the next one has them.
            reader.tell(&format!("pages {} {EACH}", tables.len() as u64 * EACH), &file);
            std::thread::sleep(Duration::from_millis(20));
            tables.extend(asked.incoming.try_iter().map(|line| table(&line)));
            if interrupted && !sent && tables.len() >= 2 {
                sent = true;
                asked.signal(libc::SIGINT);
            }
        }
        let (status, err) = asked.ended();
        assert!(status.success(), "{status}: {err}");
        tables.extend(asked.lines.iter().map(|line| table(line)));
        // On a machine that is too busy one is left out.
        assert!(tables.len() >= 3 && tables.len() <= 5, "{} tables", tables.len());
        let seconds: Vec<f64> = tables.iter().map(|t| t["seconds"].as_f64().unwrap()).collect();
        assert!(seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
        let told = |t: &Value| t["notes"].to_string().contains("interrupted");
        let (last, before) = tables.split_last().unwrap();
        assert!(
            before.iter().all(|t| t["seconds"].as_f64().unwrap() % 2.0 == 0.0 && !told(t)),
            "{seconds:?}"
        );
        assert_eq!(told(last), interrupted);
        assert!(interrupted || last["seconds"] == 10.0, "{seconds:?}");
        for (number, table) in (1_u64..).zip(&tables) {
            let row = row(table, "pid", &reader.pid().into());
            let said = figure(row, "/pages/watched") as f64;
            println!("  table {number}: {said}");
            // One that comes at once has what the one before had.
            let (least, most) = (EACH * 1.max(number - 1), EACH * (number + 1));
            assert!(said >= least as f64 * 0.9 && said <= most as f64 * 1.1, "{said}: {least} to {most}");
        }
        assert!(tables.iter().map(|t| figure(&t["all"], "/pages/watched")).is_sorted());
    }
    readers.0.into_iter().for_each(|(reader, ..)| reader.end());
}

/// More files than there is room for: what has no sketch of its own is told, and together it is there.
pub fn working_set_of_many_files(dir: &Path) {
    let files = dir.join("files");
    fs::create_dir(&files).unwrap();
    (0..300).for_each(|n| drop(hollow(&files.join(n.to_string()), 10)));
    let mut readers = Readers::new(dir, &[("files 300", &files)]);
    let all = readers.asked("--by file --file-table 100 --top 1000");
    about(&all["all"], 3000);
    let rows = all["rows"].as_array().unwrap();
    assert!(rows.len() <= 100 && rows.len() > 50, "{} rows", rows.len());
    assert!(figure(&all["other"], "/pages/watched") > 1500, "{}", all["other"]);
    let told = figure(&all, "/refused") + figure(&all, "/lost/total");
    assert!(told > 0 && all["notes"].to_string().contains("(other)"), "{}", all["notes"]);
    let all = readers.asked("--by file --top 1000");
    assert_eq!((&all["other"], &all["refused"]), (&Value::Null, &0.into()));
    assert!(all["rows"].as_array().unwrap().len() >= 300);
    readers.0.into_iter().for_each(|(reader, ..)| reader.end());
}

/// More processes than there are sketches, of which few live at a time: those that ended give theirs back, and what they used
/// is still there.
pub fn working_set_of_short_processes(dir: &Path) {
    short(dir, "process");
}

/// The same of cgroups, each with one process, that are removed.
pub fn working_set_of_short_cgroups(dir: &Path) {
    short(dir, "cgroup");
}

fn short(dir: &Path, by: &str) {
    const EACH: u64 = 10;
    const SKETCHES: u64 = 512;
    let pages = 14 * SKETCHES;
    let file = hollow(&dir.join("short"), pages);
    let over = AtomicBool::new(false);
    let (all, made) = std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let mut made = 0;
            while !over.load(Ordering::Relaxed) {
                let skip = made * EACH % pages;
                let line = format!("bs={} skip={skip} count={EACH} of=/dev/null status=none", page_size());
                let group = crate::whatif::hierarchy().join(format!("short-{}-{made}", std::process::id()));
                let enter = if by == "cgroup" {
                    fs::create_dir(&group).unwrap();
                    format!("echo $$ >{}/cgroup.procs && ", group.display())
                } else {
                    String::new()
                };
                let mut dd = Command::new("sh");
                dd.arg("-c").arg(format!("{enter}exec dd if={} {line}", file.display()));
                assert!(dd.status().unwrap().success());
                if by == "cgroup" {
                    wait_for("an empty cgroup", || fs::remove_dir(&group).is_ok());
                }
                made += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            made
        });
        let (code, out, err) =
            output(&mut cachestat(&format!("--json --working-set 12 --by {by} --top 3 --comm dd")));
        over.store(true, Ordering::Relaxed);
        assert_eq!(code, Some(0), "{err}");
        (serde_json::from_str::<Value>(&out).unwrap()["working_set"].clone(), storm.join().unwrap())
    });
    let kind = if by == "cgroup" { "cgroups" } else { "processes" };
    let ended = figure(&all, &format!("/ended/{kind}"));
    println!("  {made} {kind}, of which {ended} gave their sketches back; {} found none", all["refused"]);
    assert!(made > SKETCHES && ended >= SKETCHES / 4, "{all}");
    // No two of them in a row read the same; their programs are some pages more.
    let least = (ended * EACH).min(pages) as f64 * (1.0 - 1.5 * all["ended"]["error"].as_f64().unwrap());
    assert!(figure(&all, "/ended/pages/watched") as f64 >= least, "{least}: {all}");
    assert!(figure(&all, "/all/pages/watched") as f64 >= least, "{least}: {all}");
    assert!(all["other"].is_null() || all["refused"] != 0, "{all}");
}
